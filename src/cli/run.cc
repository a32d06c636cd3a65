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
        value.shape->emplace_back(axis);
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

// OUT.npz, or OUT-1.npz, OUT-2.npz, ... for several inputs.
std::filesystem::path output_path(const RunCommand& command, size_t i) {
  if (command.output.empty() || command.inputs.size() == 1) return command.output;
  std::filesystem::path path = command.output;
  path.replace_filename(format("{}-{}{}", command.output.stem().string(), i + 1,
                               command.output.extension().string()));
  return path;
}

Result<Json> call(const Target& target, const RunCommand& command, size_t i) {
  const std::filesystem::path& file = command.inputs[i];
  HASTEN_TRY(const NamedTensors arrays, read_npz(file));
  HASTEN_TRY(const std::vector<Tensor> inputs,
             match_inputs(arrays, target.signature, file.string()));
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
  const std::filesystem::path to = output_path(command, i);
  if (!to.empty()) HASTEN_TRY_STATUS(write_npz(to, named));
  return Json::object({{"input", file.string()},
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

int run_calls(const Target& target, const RunCommand& command) {
  Json calls = Json::array();
  std::string text;
  for (size_t i = 0; i < command.inputs.size(); ++i) {
    Result<Json> done = call(target, command, i);
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
  return kExitDone;
}

// What the first call looks like, for models that have to be called to be understood.
Result<GraphSpec> graph_of(const RunCommand& command, const Signature& signature) {
  const std::filesystem::path& file = command.inputs.front();
  HASTEN_TRY(const NamedTensors arrays, read_npz(file));
  RecordedCall call;
  HASTEN_TRY(call.sample.inputs, match_inputs(arrays, signature, file.string()));
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
  std::vector<std::filesystem::path> read = command.inputs;
  read.push_back(command.target);
  for (size_t i = 0; i < command.inputs.size(); ++i) {
    const std::filesystem::path output = output_path(command, i);
    const Status apart = check_is_none_of(output, read);
    if (!apart) return fail(apart.error());
    if (!output.empty() && !is_replaceable(output)) return fail(not_replaceable(output));
  }
  if (is_artifact(command.target)) {
    LoadOptions options;
    options.plugin_dirs = command.common.plugins;
    options.threads = command.common.threads;
    Result<Session> session = Session::load(command.target, options);
    if (!session) return fail(session.error());
    for (const std::string& warning : session->warnings()) print_warning(warning);
    return run_calls(target_of(std::move(*session)), command);
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
                     .graph_of = [&](const Signature& s) { return graph_of(command, s); },
                     .threads = command.common.threads,
                     .stop = interrupt.token()});
  if (!runnable) return fail(runnable.error());
  return run_calls(target_of(std::move(*runnable)), command);
}

}  // namespace hasten
