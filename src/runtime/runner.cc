// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/text.h"
#include "runtime/views.h"

namespace hasten {
namespace {

std::vector<TensorInfo> infos_of(const std::vector<TensorSpec>& specs) {
  std::vector<TensorInfo> infos;
  for (const TensorSpec& spec : specs) {
    TensorInfo info{spec.name, spec.dtype, {}};
    for (const Axis& axis : spec.axes) info.axes.push_back(describe(axis));
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string range_text(const Route& route) {
  std::vector<std::string> parts;
  for (const auto& [symbol, range] : route.ranges) {
    parts.push_back(range.first == range.second
                        ? format("{}={}", symbol, range.first)
                        : format("{}={}..{}", symbol, range.first, range.second));
  }
  return join(parts, ", ");
}

bool has_names_of(const GraphSpec& graph, const std::map<std::string, Tensor>& inputs) {
  return graph.inputs.size() == inputs.size() &&
         std::ranges::all_of(graph.inputs,
                             [&](const TensorSpec& spec) { return inputs.contains(spec.name); });
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::load(ArtifactFile file, PayloadHost host) {
  // The slots of the payloads hold atomics: they stay where they were made.
  auto runner = std::unique_ptr<Runner>(new Runner(std::move(file), std::move(host)));
  HASTEN_TRY_STATUS(runner->prepare());
  return runner;
}

Runner::Runner(ArtifactFile file, PayloadHost host) : payloads_(std::move(file), std::move(host)) {}

Status Runner::prepare() {
  const Manifest& manifest = payloads_.manifest();
  inputs_ = infos_of(manifest.graphs.front().spec.inputs);
  outputs_ = infos_of(manifest.graphs.front().spec.outputs);
  for (const ArtifactGraph& graph : manifest.graphs) {
    HASTEN_TRY(GraphTable table, GraphTable::of(graph));
    std::vector<size_t> routes;
    for (const Route& route : graph.routes) routes.push_back(payloads_.index_of(route.payload));
    // The first that can run is loaded here, so that the first call is not the slow one and
    // a machine without any is told at once; the others when a call needs them.
    bool usable = false;
    std::vector<std::string> reasons;
    for (const size_t index : routes) {
      HASTEN_TRY(const LoadedPayload* loaded, payloads_.get(index));
      usable = loaded != nullptr;
      if (usable && backend_.empty()) backend_ = manifest.payloads[index].candidate.label();
      if (usable) break;
      reasons.push_back(payloads_.reason(index));
    }
    if (!usable) {
      return Error{Code::kUnavailable,
                   format("nothing in the artifact can run graph {} here: {}", graph.spec.name,
                          join(reasons, "; ")),
                   "`hasten backends` says what can run here; or tune again on this machine"};
    }
    graphs_.push_back({std::move(table), std::move(routes), graph.spec.outputs.size()});
  }
  return {};
}

Result<Runner::Target> Runner::resolve(std::span<const DLTensor> inputs) const {
  SymbolSizes sizes;
  for (const Graph& graph : graphs_) {
    if (!graph.table.matches(inputs, sizes)) continue;
    for (size_t r = 0; r < graph.routes.size(); ++r) {
      if (!graph.table.route_fits(r, sizes)) continue;
      HASTEN_TRY(const LoadedPayload* payload, payloads_.get(graph.routes[r]));
      if (payload) return Target{payload, graph.n_outputs};
    }
    return no_route(static_cast<size_t>(&graph - graphs_.data()), sizes);
  }
  return explain(inputs);
}

Result<std::vector<Tensor>> Runner::run_views(std::span<const DLTensor> inputs) const {
  HASTEN_TRY(const Target target, resolve(inputs));
  StridedViews views;
  HASTEN_TRY_STATUS(views.set(inputs));
  std::vector<Tensor> outputs(target.n_outputs);
  HASTEN_TRY_STATUS(target.payload->run(views.get(), outputs));
  return outputs;
}

Result<std::vector<Tensor>> Runner::run(std::span<const Tensor> inputs) const {
  std::array<DLTensor, kFewInputs> few;
  std::vector<DLTensor> many;
  if (inputs.size() > few.size()) many.resize(inputs.size());
  DLTensor* views = many.empty() ? few.data() : many.data();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) return Error{Code::kInvalidArgument, format("input {} is no tensor", i)};
    views[i] = inputs[i].view();
  }
  return run_views({views, inputs.size()});
}

Result<std::vector<Tensor>> Runner::run(const std::map<std::string, Tensor>& inputs) const {
  HASTEN_TRY(const std::vector<DLTensor> views, in_order(inputs));
  return run_views(views);
}

Status Runner::run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const {
  HASTEN_TRY(const Target target, resolve(inputs));
  if (outputs.size() != target.n_outputs) {
    return Error{Code::kInvalidArgument, format("{} outputs are asked for, the model has {}",
                                                outputs.size(), target.n_outputs)};
  }
  StridedViews views;
  HASTEN_TRY_STATUS(views.set(inputs));
  return target.payload->run(views.get(), outputs);
}

Error Runner::no_route(size_t index, const SymbolSizes& sizes) const {
  const ArtifactGraph& graph = payloads_.manifest().graphs[index];
  const std::string given = graphs_[index].table.describe(sizes);
  std::vector<std::string> ranges, reasons;
  for (size_t r = 0; r < graph.routes.size(); ++r) {
    if (graphs_[index].table.route_fits(r, sizes)) {
      reasons.push_back(payloads_.reason(graphs_[index].routes[r]));
    } else if (std::string text = range_text(graph.routes[r]);
               std::ranges::find(ranges, text) == ranges.end()) {
      ranges.push_back(std::move(text));
    }
  }
  if (!reasons.empty()) {
    return Error{Code::kUnavailable,
                 format("what was made for {} cannot run here: {}", given, join(reasons, "; "))};
  }
  return Error{Code::kInvalidArgument,
               format("the inputs have {}, but the artifact was checked for {} only", given,
                      join(ranges, " or ")),
               "tune again with an input of that size"};
}

// The message for inputs that no graph takes. Not on the hot path.
Error Runner::explain(std::span<const DLTensor> inputs) const {
  const std::vector<ArtifactGraph>& graphs = payloads_.manifest().graphs;
  std::vector<std::string> reasons;
  for (const ArtifactGraph& graph : graphs) {
    Status accepted = graph.spec.accepts(inputs);
    if (accepted) throw std::logic_error("the table and the spec of a graph disagree");
    if (graphs.size() == 1) return std::move(accepted).error();
    reasons.push_back(format("graph {}: {}", graph.spec.name, accepted.error().message));
  }
  return Error{Code::kInvalidArgument,
               format("the inputs fit none of the artifact's graphs ({})", join(reasons, "; "))};
}

Result<std::vector<DLTensor>> Runner::in_order(const std::map<std::string, Tensor>& inputs) const {
  for (const ArtifactGraph& graph : payloads_.manifest().graphs) {
    if (!has_names_of(graph.spec, inputs)) continue;
    std::vector<DLTensor> views;
    for (const TensorSpec& spec : graph.spec.inputs) {
      const Tensor& tensor = inputs.at(spec.name);
      if (!tensor) {
        return Error{Code::kInvalidArgument, format("input '{}' is no tensor", spec.name)};
      }
      views.push_back(tensor.view());
    }
    return views;
  }
  return misnamed(inputs);
}

Error Runner::misnamed(const std::map<std::string, Tensor>& inputs) const {
  std::vector<std::string> names;
  for (const TensorInfo& info : inputs_) names.push_back(info.name);
  const std::string hint = format("the inputs are: {}", join(names, ", "));
  for (const auto& [name, tensor] : inputs) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto near = closest(name, names);
    return Error{Code::kInvalidArgument,
                 format("there is no input '{}'{}", name,
                        near ? format("; did you mean '{}'?", *near) : std::string()),
                 hint};
  }
  for (const std::string& name : names) {
    if (inputs.contains(name)) continue;
    return Error{Code::kInvalidArgument, format("the input '{}' is missing", name), hint};
  }
  return Error{Code::kInvalidArgument, "no graph of the artifact has these inputs", hint};
}

}  // namespace hasten
