// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <variant>

#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/model.h"
#include "store/artifact.h"
#include "tune/scouting.h"

namespace hasten {
namespace {

std::string describe(const ValueInfo& value) {
  std::string text = value.dtype                    ? std::string(to_string(*value.dtype))
                     : !value.foreign_dtype.empty() ? value.foreign_dtype
                                                    : "any dtype";
  if (!value.shape) return text + " of any shape";
  std::vector<std::string> axes;
  for (const Dimension& d : *value.shape) {
    const auto* size = std::get_if<int64_t>(&d);
    const std::string symbol = size ? "" : std::get<std::string>(d);
    axes.push_back(size ? format("{}", *size) : symbol.empty() ? "?" : symbol);
  }
  return text + "[" + join(axes, ",") + "]";
}

std::string describe_values(const char* title, const std::vector<ValueInfo>& values) {
  std::string text = format("{}\n", title);
  for (const ValueInfo& value : values) {
    text +=
        format("  {:<24} {}{}\n", printable_name(value.name), printable_name(describe(value)),
               value.optional ? " (optional)" : "");
  }
  if (values.empty()) text += "  not told by the file; they are learnt at the first call\n";
  return text;
}

int inspect_model(const InspectCommand& command, const Model& model) {
  Result<Registry> registry = Registry::scan(command.common.plugins);
  if (!registry) return fail(registry.error());
  Result<TemporaryFolder> folder = TemporaryFolder::create("inspect");
  if (!folder) return fail(folder.error());
  Spawner spawner;
  const std::vector<Scouted> all = scout(spawner, registry->entries(), &model,
                                         {.work_dir = folder->path(), .threads = usable_cpus(), .slow = print_waiting});
  const Result<Signature> signature = signature_of(model, all);
  if (!signature) return fail(signature.error());
  const Json described = signature->to_json();
  const Json json = Json::object({{"schema", 1},
                                  {"hasten", kVersion},
                                  {"path", model.path.string()},
                                  {"format", model.format},
                                  {"size_bytes", model.size_bytes},
                                  {"fingerprint", model.fingerprint},
                                  {"inputs", described["inputs"]},
                                  {"outputs", described["outputs"]}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  if (command.common.json == "-") return kExitDone;
  print(format("file         {}\nformat       {}\nsize         {}\nfingerprint  {}\n{}{}",
               model.path.string(), model.format, human_size(model.size_bytes), model.fingerprint,
               describe_values("inputs", signature->inputs),
               describe_values("outputs", signature->outputs)));
  return kExitDone;
}

// "float32[B,3]": the sizes that were recorded are no limit, so they stand apart.
std::string describe(const TensorSpec& spec) {
  std::vector<std::string> axes;
  for (const Axis& axis : spec.axes) axes.push_back(symbol_text(axis));
  return format("{} {}[{}]", spec.name, to_string(spec.dtype), join(axes, ","));
}

// "    sizes    tuned with B=1..2; other sizes run too"
std::string describe_sizes(const ArtifactGraph& graph) {
  std::vector<std::string> sizes;
  for (const TensorSpec& input : graph.spec.inputs) {
    for (const Axis& axis : input.axes) {
      if (axis.kind == AxisKind::kStatic || axis.max == 0) continue;
      Axis size = axis;  // Of the symbol itself: B=1..2 where the axis is 2*B.
      size.multiplier = 1;
      size.min /= axis.multiplier;
      size.max /= axis.multiplier;
      const std::string text = describe(size);
      if (std::ranges::find(sizes, text) == sizes.end()) sizes.push_back(text);
    }
  }
  if (sizes.empty()) return "";
  const bool any_size = std::ranges::any_of(
      graph.routes, [](const Route& route) { return route.ranges.empty(); });
  return format("    sizes    tuned with {}; {}\n", printable_name(join(sizes, ", ")),
                any_size ? "other sizes run too" : "other sizes run within the limits below");
}

std::string describe_route(const Manifest& manifest, const Route& route, const char* role) {
  std::string label = route.payload;
  for (const Payload& payload : manifest.payloads) {
    if (payload.name == route.payload) {
      label = format("{} ({})", payload.candidate.label(), payload.library_version);
    }
  }
  std::string where;
  for (const auto& [symbol, range] : route.ranges) {
    where += range.second == INT64_MAX
                 ? format(", for {} from {} on", symbol, range.first)
                 : format(", for {} from {} to {}", symbol, range.first, range.second);
  }
  return format("    {:<8} {}\n", role, printable_name(label + where));
}

int inspect_artifact(const InspectCommand& command, const Model& file) {
  Result<ArtifactFile> artifact = ArtifactFile::open(file.path);
  if (!artifact) return fail(artifact.error());
  const Manifest& manifest = artifact->manifest();
  const Json json = Json::object({{"schema", 1},
                                  {"hasten", kVersion},
                                  {"path", file.path.string()},
                                  {"format", file.format},
                                  {"size_bytes", file.size_bytes},
                                  {"fingerprint", file.fingerprint},
                                  {"manifest", manifest.to_json()}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  if (command.common.json == "-") return kExitDone;
  std::string text = format(
      "file         {}\nformat       hasten artifact, schema {}\nsize         {}\nfingerprint  "
      "{}\n",
      file.path.string(), manifest.schema, human_size(file.size_bytes), file.fingerprint);
  for (const ArtifactGraph& graph : manifest.graphs) {
    text += format("graph {}\n", printable_name(graph.spec.name));
    for (const TensorSpec& input : graph.spec.inputs)
      text += "    in       " + printable_name(describe(input)) + "\n";
    for (const TensorSpec& out : graph.spec.outputs)
      text += "    out      " + printable_name(describe(out)) + "\n";
    text += describe_sizes(graph);
    for (size_t i = 0; i < graph.routes.size(); ++i) {
      text += describe_route(manifest, graph.routes[i], i == 0 ? "first" : "then");
    }
  }
  const Json& winner = manifest.report["winner"];
  if (!winner.is_null()) {
    text += format("chosen because {}\n", printable_name(winner["why"].as_string()));
  }
  print(text);
  return kExitDone;
}

}  // namespace

int run_inspect(const InspectCommand& command) {
  const Result<Model> model = open_model(command.target);
  if (!model) return fail(model.error());
  return model->format == "hasten" ? inspect_artifact(command, *model)
                                   : inspect_model(command, *model);
}

}  // namespace hasten
