// SPDX-License-Identifier: Apache-2.0
#include <hasten/runtime.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "base/zip.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "model/model.h"
#include "model/recording.h"
#include "model/samples.h"
#include "tensor/npz.h"
#include "tune/inputs.h"
#include "tune/runnable.h"

namespace hasten {
namespace {

// Something that answers calls: an artifact in this process, or a model in a child.
struct Target {
  Signature signature;
  std::string label;
  std::vector<std::string> output_names;
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>&)> run;
};

std::vector<ValueInfo> values_of(const std::vector<TensorInfo>& infos) {
  std::vector<ValueInfo> values;
  for (const TensorInfo& info : infos) {
    ValueInfo value;
    value.name = info.name;
    value.dtype = info.dtype;
    value.shape.emplace();
    for (const std::string& axis : info.axes) {
      int64_t size = 0;
      const char* end = axis.data() + axis.size();
      if (std::from_chars(axis.data(), end, size).ptr == end)
        value.shape->emplace_back(size);
      else
        value.shape->emplace_back(axis.substr(0, axis.find('=')));  // Recorded, but no limit.
    }
    values.push_back(std::move(value));
  }
  return values;
}

Target target_of(Session session) {
  auto shared = std::make_shared<Session>(std::move(session));
  Target target;
  target.signature.inputs = values_of(shared->inputs());
  target.label = shared->backend();
  for (const TensorInfo& info : shared->outputs()) target.output_names.push_back(info.name);
  target.run = [shared](const std::vector<Tensor>& inputs) { return shared->run(inputs); };
  return target;
}

Target target_of(Runnable runnable) {
  auto shared = std::make_shared<Runnable>(std::move(runnable));
  Target target;
  target.signature = shared->signature;
  target.label = shared->label;
  for (const ValueInfo& info : shared->signature.outputs) target.output_names.push_back(info.name);
  target.run = [shared](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    constexpr std::chrono::nanoseconds kTimeout = std::chrono::hours(1);
    HASTEN_TRY_STATUS(shared->worker.set_inputs(0, inputs, kTimeout));
    HASTEN_TRY(CallResult call, shared->worker.run(0, kTimeout));
    return std::move(call.outputs);
  };
  return target;
}

std::string name_of(const Target& target, size_t i, size_t count) {
  if (target.output_names.size() == count) return target.output_names[i];
  return count == 1 ? "output" : format("output_{}", i);
}

Json describe(const std::string& name, const Tensor& tensor) {
  Json shape = Json::array();
  for (const int64_t size : tensor.shape()) shape.push(size);
  return Json::object(
      {{"name", name}, {"dtype", to_string(tensor.dtype())}, {"shape", std::move(shape)}});
}

// The --input of each call: a file is one, all SPECs together are one.
Result<std::vector<std::vector<std::string>>> calls_of(const RunCommand& command) {
  const auto specs = std::ranges::count_if(command.inputs, looks_like_spec);
  if (specs == std::ssize(command.inputs)) return std::vector<std::vector<std::string>>{command.inputs};
  if (specs > 0) {
    return Error{Code::kInvalidArgument, "--input has files and SPECs",
                 "a file is a call, SPECs describe the random inputs of another: give either"};
  }
  std::vector<std::vector<std::string>> calls;
  for (const std::string& file : command.inputs) calls.push_back({file});
  return calls;
}

Result<std::vector<Tensor>> inputs_of(const std::vector<std::string>& given,
                                      const Signature& signature) {
  if (!looks_like_spec(given.front())) {
    HASTEN_TRY(const NamedTensors arrays, read_npz(given.front()));
    return match_inputs(arrays, signature, given.front());
  }
  InputRequest request;
  request.inputs = given;
  HASTEN_TRY(PreparedInputs prepared, prepare_inputs(request, signature));
  return std::move(prepared.graphs.front().samples.front().inputs);
}

// OUT.npz, or OUT-1.npz, OUT-2.npz, ... for several calls.
std::filesystem::path output_path(const RunCommand& command, size_t i, size_t calls) {
  if (command.output.empty() || calls == 1) return command.output;
  std::filesystem::path path = command.output;
  path.replace_filename(format("{}-{}{}", command.output.stem().string(), i + 1,
                               command.output.extension().string()));
  return path;
}

Result<Json> call(const Target& target, const std::vector<std::string>& given,
                  const std::filesystem::path& to) {
  HASTEN_TRY(const std::vector<Tensor> inputs, inputs_of(given, target.signature));
  const std::chrono::nanoseconds begin = real_clock().now();
  HASTEN_TRY(std::vector<Tensor> outputs, target.run(inputs));
  const double milliseconds =
      std::chrono::duration<double, std::milli>(real_clock().now() - begin).count();
  Json described = Json::array();
  NamedTensors named;
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::string name = name_of(target, k, outputs.size());
    described.push(describe(name, outputs[k]));
    named.emplace_back(std::move(name), std::move(outputs[k]));
  }
  if (!to.empty()) HASTEN_TRY_STATUS(write_npz(to, named));
  return Json::object({{"input", join(given, " ")},
                       {"output", to.empty() ? Json() : Json(to.string())},
                       {"duration_ms", milliseconds},
                       {"outputs", std::move(described)}});
}

std::string to_text(const Json& call) {
  std::string text;
  for (const Json& output : call["outputs"].items()) {
    std::vector<std::string> shape;
    for (const Json& size : output["shape"].items()) shape.push_back(format("{}", size.as_int()));
    text += format("{:<24} {}[{}]\n", printable_name(output["name"].as_string()),
                   output["dtype"].as_string(),
                   join(shape, ","));
  }
  if (call["output"].is_string()) text += format("written to {}\n", call["output"].as_string());
  return text;
}

int run_calls(const Target& target, const RunCommand& command,
              const std::vector<std::vector<std::string>>& given) {
  Json calls = Json::array();
  std::string text;
  for (size_t i = 0; i < given.size(); ++i) {
    Result<Json> done = call(target, given[i], output_path(command, i, given.size()));
    if (!done) return fail(done.error());
    text += to_text(*done);
    calls.push(std::move(*done));
  }
  const Json json = Json::object({{"schema", 1},
                                  {"hasten", kVersion},
                                  {"target", command.target.string()},
                                  {"backend", target.label},
                                  {"calls", std::move(calls)}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  if (command.common.json != "-") print(text);
  if (command.output.empty() && !command.common.quiet) {
    print_note("the outputs were not saved; -o OUT.npz saves them");
  }
  return kExitDone;
}

// What the first call looks like, for models that have to be called to be understood.
Result<GraphSpec> graph_of(const std::vector<std::string>& given, const Signature& signature) {
  RecordedCall call;
  HASTEN_TRY(call.sample.inputs, inputs_of(given, signature));
  std::vector<std::string> names;
  for (const ValueInfo& input : signature.inputs) names.push_back(input.name);
  std::vector<RecordedCall> calls;
  calls.push_back(std::move(call));
  return std::move(group_into_graphs(std::move(calls), names).front().spec);
}

// By the table of contents only: hashing a large model would delay the first output.
bool is_artifact(const std::filesystem::path& path) {
  const Result<ZipReader> zip = ZipReader::open(path);
  return zip && zip->contains("manifest.json");
}

}  // namespace

int run_run(const RunCommand& command) {
  if (!command.output.empty()) {
    if (Status place = check_has_folder(command.output); !place) return fail(place.error());
  }
  const Result<std::vector<std::vector<std::string>>> given = calls_of(command);
  if (!given) return fail(given.error());
  std::vector<std::filesystem::path> read(command.inputs.begin(), command.inputs.end());
  read.push_back(command.target);
  for (size_t i = 0; i < given->size(); ++i) {
    const std::filesystem::path output = output_path(command, i, given->size());
    const Status apart = check_is_none_of(output, read);
    if (!apart) return fail(apart.error());
    if (!output.empty() && !is_replaceable(output)) return fail(not_replaceable(output));
  }
  if (is_artifact(command.target)) {
    if (!command.backend.empty()) {
      return fail({Code::kInvalidArgument,
                   format("{} is an artifact, and --backend is for a model: what runs an artifact "
                          "was chosen by the tune",
                          command.target.string()),
                   "leave --backend out, or run the model that the artifact was made from"});
    }
    LoadOptions options;
    options.plugin_dirs = command.common.plugins;
    options.threads = command.common.threads;
    Result<Session> session = Session::load(command.target, options);
    if (!session) return fail(session.error());
    for (const std::string& warning : session->warnings()) print_warning(warning);
    return run_calls(target_of(std::move(*session)), command, *given);
  }
  const InterruptScope interrupt;
  Result<TemporaryFolder> folder = TemporaryFolder::create("run");
  if (!folder) return fail(folder.error());
  Spawner spawner;
  Result<Runnable> runnable =
      open_runnable(spawner, command.target,
                    {.work_dir = folder->path(),
                     .plugins = command.common.plugins,
                     .backend = command.backend,
                     .graph_of = [&](const Signature& s) { return graph_of(given->front(), s); },
                     .threads = command.common.threads,
                     .stop = interrupt.token()});
  if (!runnable) return fail(runnable.error());
  return run_calls(target_of(std::move(*runnable)), command, *given);
}

}  // namespace hasten
