// SPDX-License-Identifier: Apache-2.0
#include "model/recording.h"

#include "base/text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

namespace hasten {
namespace {

using Call = const std::vector<Tensor>*;  // Borrowed.
using BatchSizes = std::span<const std::optional<int64_t>>;

struct AxisSizes {
  std::vector<int64_t> sizes;  // One per call.
  Axis axis;
};

// m, when every call of known batch size b has m * b here and there are two such b.
std::optional<int64_t> batch_multiplier(const std::vector<int64_t>& sizes, BatchSizes batches) {
  std::set<int64_t> distinct;
  std::optional<int64_t> multiplier;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (!batches[k]) continue;
    const int64_t batch = *batches[k];
    distinct.insert(batch);
    if (batch <= 0) {
      if (batch < 0 || sizes[k] != 0) return std::nullopt;
      continue;  // Zero rows fit any multiplier.
    }
    if (sizes[k] % batch != 0 || sizes[k] == 0) return std::nullopt;
    if (multiplier && *multiplier != sizes[k] / batch) return std::nullopt;
    multiplier = sizes[k] / batch;
  }
  if (distinct.size() < 2) return std::nullopt;
  return multiplier;
}

// A call of unknown batch size proves no batch axis, but it can disprove one: all batch
// axes of the call must agree on how many rows there are.
void drop_contradicted(std::vector<AxisSizes>& axes, BatchSizes batches) {
  for (size_t k = 0; k < batches.size(); ++k) {
    if (batches[k]) continue;
    std::set<int64_t> implied;
    for (AxisSizes& a : axes) {
      if (a.axis.kind != AxisKind::kBatch) continue;
      if (a.sizes[k] % a.axis.multiplier != 0) {
        a.axis.kind = AxisKind::kDynamic;
      } else {
        implied.insert(a.sizes[k] / a.axis.multiplier);
      }
    }
    if (implied.size() < 2) continue;
    for (AxisSizes& a : axes) {
      if (a.axis.kind == AxisKind::kBatch) a.axis.kind = AxisKind::kDynamic;
    }
  }
}

using Namer = std::function<std::string(const AxisSizes&)>;

// All calls have the arity, ranks and dtypes of the first.
std::vector<TensorSpec> infer(const std::vector<Call>& calls, BatchSizes batches,
                              const std::vector<std::string>& names, std::string_view what,
                              const Namer& symbol_of) {
  std::vector<AxisSizes> axes;
  for (size_t i = 0; i < calls[0]->size(); ++i) {
    for (size_t a = 0; a < (*calls[0])[i].shape().size(); ++a) {
      AxisSizes sizes;
      for (const Call call : calls) sizes.sizes.push_back((*call)[i].shape()[a]);
      const auto [low, high] = std::ranges::minmax(sizes.sizes);
      sizes.axis.min = low;
      sizes.axis.max = high;
      if (low != high) {
        const auto multiplier = batch_multiplier(sizes.sizes, batches);
        sizes.axis.kind = multiplier ? AxisKind::kBatch : AxisKind::kDynamic;
        sizes.axis.multiplier = multiplier.value_or(1);
      }
      axes.push_back(std::move(sizes));
    }
  }
  drop_contradicted(axes, batches);

  std::vector<TensorSpec> specs;
  auto next = axes.begin();
  for (size_t i = 0; i < calls[0]->size(); ++i) {
    const Tensor& tensor = (*calls[0])[i];
    TensorSpec spec{i < names.size() ? names[i] : format("{}{}", what, i), tensor.dtype(), {}};
    for (size_t a = 0; a < tensor.shape().size(); ++a, ++next) {
      if (next->axis.kind == AxisKind::kBatch) next->axis.symbol = std::string("B");
      if (next->axis.kind == AxisKind::kDynamic) {
        next->axis.multiplier = 1;
        next->axis.symbol = symbol_of(*next);
      }
      spec.axes.push_back(next->axis);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

// Axes whose sizes are the same in every call share a symbol.
class SymbolTable {
 public:
  explicit SymbolTable(size_t used) : used_(used) {}
  const std::string& symbol_of(const std::vector<int64_t>& sizes) {
    for (const auto& [known, symbol] : symbols_) {
      if (known == sizes) return symbol;
    }
    symbols_.emplace_back(sizes, format("dim{}", ++used_));
    return symbols_.back().second;
  }

 private:
  size_t used_;
  std::vector<std::pair<std::vector<int64_t>, std::string>> symbols_;
};

std::string structure_of(const std::vector<Tensor>& tensors) {
  std::string key;
  for (const Tensor& t : tensors) key += format("{}/{};", to_string(t.dtype()), t.shape().size());
  return key;
}

// Symbols of the dynamic input axes with the range they were seen in.
std::map<std::string, std::pair<int64_t, int64_t>> input_ranges(const GraphSpec& graph) {
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  for (const TensorSpec& spec : graph.inputs) {
    for (const Axis& axis : spec.axes) {
      if (axis.kind != AxisKind::kDynamic) continue;
      ranges[axis.symbol] = {axis.min / axis.multiplier, axis.max / axis.multiplier};
    }
  }
  return ranges;
}

}  // namespace

std::vector<RecordedGraph> group_into_graphs(std::vector<RecordedCall> calls,
                                             const std::vector<std::string>& input_names) {
  std::vector<RecordedGraph> graphs;
  std::vector<std::string> structures;
  for (RecordedCall& call : calls) {
    const std::string structure = structure_of(call.sample.inputs);
    const auto found = std::ranges::find(structures, structure);
    const size_t index = static_cast<size_t>(found - structures.begin());
    if (found == structures.end()) {
      structures.push_back(structure);
      graphs.emplace_back().spec.name = std::to_string(index);
    }
    graphs[index].samples.push_back(std::move(call.sample));
    graphs[index].batch_sizes.push_back(call.batch_size);
  }
  for (RecordedGraph& graph : graphs) {
    std::vector<Call> inputs;
    for (const Sample& sample : graph.samples) inputs.push_back(&sample.inputs);
    SymbolTable symbols(0);
    graph.spec.inputs = infer(inputs, graph.batch_sizes, input_names, "input",
                              [&](const AxisSizes& a) { return symbols.symbol_of(a.sizes); });
  }
  return graphs;
}

std::vector<TensorSpec> output_specs(const GraphSpec& graph,
                                     std::span<const std::vector<Tensor>> outputs,
                                     std::span<const std::optional<int64_t>> batch_sizes,
                                     const std::vector<std::string>& names) {
  if (outputs.empty() || outputs.size() != batch_sizes.size()) {
    throw std::logic_error("output_specs: as many batch sizes as calls, and at least one");
  }
  // A call whose outputs have another structure is the check's business, not ours.
  std::vector<Call> calls;
  std::vector<std::optional<int64_t>> batches;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (structure_of(outputs[k]) != structure_of(outputs[0])) continue;
    calls.push_back(&outputs[k]);
    batches.push_back(batch_sizes[k]);
  }
  const auto ranges = input_ranges(graph);
  SymbolTable symbols(ranges.size());
  return infer(calls, batches, names, "output", [&](const AxisSizes& a) {
    // The inputs of these calls are not known here: an output axis takes an input's symbol
    // when it was seen in the range of exactly that one.
    std::string symbol;
    for (const auto& [name, range] : ranges) {
      if (range != std::pair(a.axis.min, a.axis.max)) continue;
      if (!symbol.empty()) return symbols.symbol_of(a.sizes);
      symbol = name;
    }
    return symbol.empty() ? symbols.symbol_of(a.sizes) : symbol;
  });
}

Status declare(GraphSpec& graph, std::span<const InputSpec> specs) {
  for (const InputSpec& spec : specs) {
    const auto found = std::ranges::find(graph.inputs, spec.name, &TensorSpec::name);
    const auto refuse = [&](std::string message) {
      return Error{Code::kInvalidArgument, format("input '{}': {}", spec.name, message)};
    };
    if (found == graph.inputs.end()) return refuse("is declared, but no sample has it");
    if (found->dtype != spec.dtype) {
      return refuse(format("is declared {}, but the samples have {}", to_string(spec.dtype),
                           to_string(found->dtype)));
    }
    if (found->axes.size() != spec.axes.size()) {
      return refuse(format("is declared with rank {}, but the samples have rank {}",
                           spec.axes.size(), found->axes.size()));
    }
    for (size_t a = 0; a < spec.axes.size(); ++a) {
      Axis axis = spec.axes[a];
      Axis& seen = found->axes[a];
      const bool ranged = axis.kind == AxisKind::kStatic || axis.max > 0;
      if (axis.kind == AxisKind::kStatic && (seen.min != axis.min || seen.max != axis.max)) {
        return refuse(format("axis {} is declared {}, but the samples have {}", a, axis.min,
                             seen.min == axis.min ? seen.max : seen.min));
      }
      if (seen.min % axis.multiplier != 0 || seen.max % axis.multiplier != 0) {
        return refuse(format("axis {} is declared a multiple of {}, but the samples have {}", a,
                             axis.multiplier,
                             seen.min % axis.multiplier != 0 ? seen.min : seen.max));
      }
      axis.min = ranged ? std::min(axis.min, seen.min) : seen.min;
      axis.max = ranged ? std::max(axis.max, seen.max) : seen.max;
      seen = std::move(axis);
    }
  }
  return {};
}

}  // namespace hasten
