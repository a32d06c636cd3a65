// SPDX-License-Identifier: Apache-2.0
#include "backend/worker.h"

#include <algorithm>
#include <new>

#include "backend/worker_channel.h"
#include "base/text.h"

namespace hasten {
namespace {

using std::chrono::nanoseconds;

// Of requests that only look at the worker's own state.
constexpr nanoseconds kShort = std::chrono::seconds(10);

Json request_of(std::string_view op) { return Json::object({{"op", op}}); }

std::string from_root(const std::filesystem::path& path) {
  // The worker has another working folder.
  return path.empty() ? std::string() : std::filesystem::absolute(path).string();
}

}  // namespace

struct Worker::Impl {
  WorkerChannel channel;

  Result<Json> field(const Json& request, std::string_view key, nanoseconds timeout) {
    HASTEN_TRY(Json reply, channel.exchange(request, timeout));
    if (!reply.contains(key)) {
      return channel.refuse(request["op"].as_string(),
                            Error{Code::kInternal, format("no '{}' in it", key)});
    }
    return reply[key];
  }
  Status done(const Json& request, nanoseconds timeout) {
    HASTEN_TRY_STATUS(channel.exchange(request, timeout));
    return {};
  }
  Result<std::vector<Tensor>> read_outputs(const Json& described);
};

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Result<Worker> Worker::start(Spawner& spawner, WorkerOptions options) {
  HASTEN_TRY(WorkerChannel channel, WorkerChannel::open(spawner, std::move(options)));
  return Worker(std::make_unique<Impl>(Impl{std::move(channel)}));
}

const std::string& Worker::backend() const { return impl_->channel.options().backend.name; }

Result<Json> Worker::describe(nanoseconds timeout) {
  return impl_->field(request_of("describe"), "describe", timeout);
}

Result<Json> Worker::probe(nanoseconds timeout) {
  return impl_->field(request_of("probe"), "facts", timeout);
}

Result<Json> Worker::inspect(const std::filesystem::path& model, const std::string& model_format,
                             nanoseconds timeout, const Json& graph) {
  Json request = request_of("inspect");
  request.set("model", from_root(model)).set("format", model_format).set("graph", graph);
  return impl_->field(request, "signature", timeout);
}

Result<Json> Worker::candidates(const std::filesystem::path& model, const std::string& model_format,
                                nanoseconds timeout) {
  Json request = request_of("candidates");
  request.set("model", from_root(model)).set("format", model_format);
  return impl_->field(request, "candidates", timeout);
}

Status Worker::build(const std::filesystem::path& model, const std::string& model_format,
                     const Json& graph, const Candidate& candidate, nanoseconds timeout) {
  Json config = Json::object();
  for (const auto& [key, value] : candidate.config) config.set(key, value);
  Json request = request_of("build");
  request.set("model", from_root(model))
      .set("format", model_format)
      .set("graph", graph)
      .set("config", std::move(config))
      .set("work_dir", impl_->channel.options().work_dir.string());
  return impl_->done(request, timeout);
}

Status Worker::save(const std::filesystem::path& dir, nanoseconds timeout) {
  return impl_->done(request_of("save").set("dir", from_root(dir)), timeout);
}

Status Worker::load(const std::filesystem::path& dir, nanoseconds timeout) {
  return impl_->done(request_of("load").set("dir", from_root(dir)), timeout);
}

Status Worker::set_inputs(size_t slot, std::span<const Tensor> inputs, nanoseconds timeout) {
  std::vector<Tensor> copies;
  if (std::any_of(inputs.begin(), inputs.end(), has_negative_stride)) {
    for (const Tensor& input : inputs) copies.push_back(input.clone());
    inputs = copies;
  }
  const Placement placement = place(inputs);
  HASTEN_TRY_STATUS(impl_->channel.inputs().write(inputs, placement));
  Json tensors = Json::array();
  for (const TensorLayout& layout : placement.layouts) tensors.push(layout.to_json());
  Json request = request_of("inputs");
  request.set("slot", slot).set("tensors", std::move(tensors));
  Status status = impl_->done(request, timeout);
  // The worker has its own copy: inputs of a large batch must not stay in memory twice.
  HASTEN_TRY_STATUS(impl_->channel.inputs().resize(0));
  return status;
}

Result<std::vector<Tensor>> Worker::Impl::read_outputs(const Json& described) {
  HASTEN_TRY(const uint64_t size, channel.outputs().size());
  HASTEN_TRY(const uint64_t written, channel.outputs().allocated());
  const uint64_t memory_limit = channel.options().memory_limit_bytes;
  if (memory_limit > 0 && written > memory_limit) {
    return channel.end({Code::kOutOfMemory,
                        format("{}: gave outputs of {}, more than the limit of {}; the worker was "
                               "killed",
                               channel.options().backend.name, human_size(written),
                               human_size(memory_limit))});
  }
  uint64_t left = written;
  std::vector<Tensor> outputs;
  for (const Json& item : described.items()) {
    auto layout = TensorLayout::from_json(item, size);
    if (!layout) return channel.refuse("run", layout.error());
    const uint64_t bytes = element_count(layout->shape) * size_bytes(layout->dtype);
    if (bytes > left) {
      return channel.refuse("run", {Code::kInternal, "outputs of more bytes than were written"});
    }
    left -= bytes;
    auto tensor = channel.outputs().read(*layout);
    if (!tensor) return channel.refuse("run", tensor.error());
    outputs.push_back(*std::move(tensor));
  }
  return outputs;
}

Result<CallResult> Worker::run(size_t slot, nanoseconds timeout) {
  Json request = request_of("run");
  request.set("slot", slot);
  HASTEN_TRY(const Json reply, impl_->channel.exchange(request, timeout));
  try {
    HASTEN_TRY(std::vector<Tensor> outputs, impl_->read_outputs(reply["outputs"]));
    if (outputs.empty()) {
      return Error{Code::kUnsupported,
                   format("{}: the model returns no tensor, so there is nothing to compare",
                          backend()),
                   "let it return what it computes"};
    }
    return CallResult{std::move(outputs), nanoseconds(reply["duration_ns"].as_int())};
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory,
                 format("{}: there is no memory left for a copy of its outputs", backend())};
  }
}

Result<CallAudit> Worker::audit(size_t slot, size_t other, nanoseconds timeout) {
  Json request = request_of("audit");
  request.set("slot", slot).set("other", other);
  HASTEN_TRY(const Json reply, impl_->channel.exchange(request, timeout));
  CallAudit audit;
  for (const Json& index : reply["written_inputs"].items()) {
    audit.written_inputs.push_back(static_cast<size_t>(index.as_int()));
  }
  for (const Json& pair : reply["aliases"].items()) {
    if (pair.items().size() != 2) continue;
    audit.aliases.emplace_back(static_cast<size_t>(pair.items()[0].as_int()),
                               static_cast<size_t>(pair.items()[1].as_int()));
  }
  audit.first_result_changed = reply["first_result_changed"].as_bool();
  return audit;
}

Result<std::vector<int64_t>> Worker::turn(size_t slot, nanoseconds budget, bool fresh_inputs,
                                          nanoseconds timeout) {
  Json request = request_of("turn");
  request.set("slot", slot)
      .set("budget_ns", static_cast<int64_t>(budget.count()))
      .set("fresh_inputs", fresh_inputs);
  HASTEN_TRY(const Json times, impl_->field(request, "durations_ns", timeout));
  std::vector<int64_t> durations;
  durations.reserve(times.items().size());
  for (const Json& time : times.items()) durations.push_back(time.as_int());
  if (durations.empty()) {
    return impl_->channel.refuse("turn", Error{Code::kInternal, "no call was made"});
  }
  return durations;
}

Result<uint64_t> Worker::peak_memory_bytes() {
  HASTEN_TRY(const Json bytes, impl_->field(request_of("memory"), "peak_bytes", kShort));
  return static_cast<uint64_t>(bytes.as_int());
}

Result<Json> Worker::self_test(const Json& request, nanoseconds timeout) {
  Json message = request;
  message.set("op", "self_test");
  return impl_->channel.exchange(message, timeout);
}

void Worker::stop() { impl_->channel.stop(); }
void Worker::resume() { impl_->channel.resume(); }
bool Worker::alive() const { return impl_->channel.alive(); }
int Worker::pid() const { return impl_->channel.pid(); }
void Worker::shut_down() { impl_->channel.shut_down(); }

}  // namespace hasten
