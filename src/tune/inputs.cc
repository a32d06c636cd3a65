// SPDX-License-Identifier: Apache-2.0
#include "tune/inputs.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "base/machine.h"
#include "base/text.h"
#include "model/samples.h"
#include "tensor/npz.h"
#include "tune/specs.h"

namespace hasten {
namespace {

struct Request {
  std::vector<InputSpec> specs;
  std::vector<std::string> files;
};

Result<Request> sort_out(const std::vector<std::string>& inputs) {
  Request request;
  for (const std::string& text : inputs) {
    if (looks_like_spec(text)) {
      HASTEN_TRY(InputSpec spec, parse_input_spec(text));
      for (const InputSpec& other : request.specs) {
        if (other.name == spec.name) {
          return Error{Code::kInvalidArgument,
                       format("the input '{}' is given by two SPECs", spec.name)};
        }
      }
      request.specs.push_back(std::move(spec));
    } else {
      request.files.push_back(text);
    }
  }
  HASTEN_TRY_STATUS(share_ranges(request.specs));
  return request;
}

bool has_symbols(const Signature& signature) {
  for (const ValueInfo& input : signature.inputs) {
    if (!input.shape) continue;
    for (const Dimension& d : *input.shape) {
      if (std::holds_alternative<std::string>(d)) return true;
    }
  }
  return false;
}

bool has_shapes(const Signature& signature) {
  return std::all_of(signature.inputs.begin(), signature.inputs.end(),
                     [](const ValueInfo& input) { return input.shape.has_value(); });
}

// The batch size of a file's sample: where the model or a SPEC names the batch axis,
// its size there; else axis 0 of the first input that has one.
std::optional<int64_t> batch_size_of(const std::vector<Tensor>& inputs, const Signature& signature,
                                     const std::vector<InputSpec>& specs) {
  for (const InputSpec& spec : specs) {
    for (size_t k = 0; k < signature.inputs.size() && k < inputs.size(); ++k) {
      if (signature.inputs[k].name != spec.name) continue;
      for (size_t i = 0; i < spec.axes.size() && i < inputs[k].shape().size(); ++i) {
        if (spec.axes[i].kind == AxisKind::kBatch) {
          return inputs[k].shape()[i] / std::max<int64_t>(1, spec.axes[i].multiplier);
        }
      }
    }
  }
  if (has_symbols(signature) || !has_shapes(signature)) {
    const std::string batch = batch_symbol(signature);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].shape().empty()) continue;
      const auto& shape = signature.inputs[k].shape;
      if (!shape) return inputs[k].shape()[0];
      for (size_t i = 0; i < shape->size(); ++i) {
        const auto* symbol = std::get_if<std::string>(&(*shape)[i]);
        if (symbol && *symbol == batch && (i == 0 || !batch.empty())) return inputs[k].shape()[i];
      }
    }
  }
  return std::nullopt;
}

// Corrects what the samples show by what the model file says of its own axes.
void apply_signature(GraphSpec& graph, const Signature& signature,
                     std::optional<int64_t> one_batch_size) {
  const std::string batch = batch_symbol(signature);
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const auto& shape = signature.inputs[k].shape;
    if (!shape || shape->size() != graph.inputs[k].axes.size()) continue;
    for (size_t i = 0; i < shape->size(); ++i) {
      Axis& axis = graph.inputs[k].axes[i];
      const auto* symbol = std::get_if<std::string>(&(*shape)[i]);
      if (!symbol) {
        axis.kind = AxisKind::kStatic;
        axis.symbol.clear();
        continue;
      }
      // The model's own word for an axis that varies says more than ours.
      if (axis.kind == AxisKind::kDynamic && !symbol->empty()) axis.symbol = *symbol;
      if (axis.kind != AxisKind::kStatic) continue;
      const bool is_batch = *symbol == batch && (!symbol->empty() || i == 0);
      if (is_batch && one_batch_size.value_or(0) > 0 && axis.min % *one_batch_size == 0) {
        axis.kind = AxisKind::kBatch;
        axis.multiplier = axis.min / *one_batch_size;
        axis.symbol = "B";
      } else if (!is_batch) {
        axis.kind = AxisKind::kDynamic;
        axis.symbol = symbol->empty() ? format("{}_{}", graph.inputs[k].name, i) : *symbol;
      }
    }
  }
}

// Axis 0 of every input whose axis 0 has the size of the first one's.
bool guess_batch(GraphSpec& graph) {
  std::optional<int64_t> size;
  for (TensorSpec& input : graph.inputs) {
    if (input.axes.empty()) continue;
    Axis& axis = input.axes.front();
    if (axis.kind != AxisKind::kStatic) return false;
    if (!size) size = axis.min;
    if (axis.min != *size || *size == 0) continue;
    axis.kind = AxisKind::kBatch;
    axis.symbol = "B";
  }
  return size.value_or(0) > 0;
}

Result<std::vector<RecordedCall>> read_calls(const Request& request, const Signature& signature) {
  std::vector<RecordedCall> calls;
  for (const std::string& file : request.files) {
    HASTEN_TRY(NamedTensors arrays, read_npz(file));
    RecordedCall call;
    HASTEN_TRY(call.sample.inputs, match_inputs(arrays, signature, file));
    call.sample.origin = file;
    call.batch_size = batch_size_of(call.sample.inputs, signature, request.specs);
    calls.push_back(std::move(call));
  }
  return calls;
}

std::optional<int64_t> only_batch_size(const RecordedGraph& graph) {
  std::optional<int64_t> only;
  for (const std::optional<int64_t>& size : graph.batch_sizes) {
    if (!size || (only && *only != *size)) return std::nullopt;
    only = size;
  }
  return only;
}

// Samples of several dtypes or ranks are several graphs; a SPEC speaks of those it fits.
bool is_about(const InputSpec& spec, const GraphSpec& graph) {
  return std::ranges::any_of(graph.inputs, [&](const TensorSpec& input) {
    return input.name == spec.name && input.dtype == spec.dtype &&
           input.axes.size() == spec.axes.size();
  });
}

Result<PreparedGraph> prepare_graph(RecordedGraph recorded, const Request& request,
                                    const Signature& signature,
                                    std::vector<std::string>& warnings) {
  PreparedGraph graph;
  const std::optional<int64_t> one_size = only_batch_size(recorded);
  graph.spec = std::move(recorded.spec);
  graph.samples = std::move(recorded.samples);
  apply_signature(graph.spec, signature, one_size);
  std::vector<InputSpec> specs;
  std::ranges::copy_if(request.specs, std::back_inserter(specs),
                       [&](const InputSpec& spec) { return is_about(spec, graph.spec); });
  HASTEN_TRY_STATUS(declare(graph.spec, specs));
  graph.batch_has_range = graph.spec.has_batch_axis() && batch_range(specs).has_value();
  const bool axes_unknown = request.specs.empty() && !has_shapes(signature);
  if (axes_unknown && !graph.spec.has_batch_axis() && one_size) {
    graph.batch_is_guessed = guess_batch(graph.spec);
  }
  if (!graph.spec.has_batch_axis() && request.specs.empty()) {
    warnings.push_back(
        format("graph {}: no batch axis is known, so every call is one batch of 1; samples at two "
               "batch sizes, or a SPEC with B, would show it",
               graph.spec.name));
  }
  return graph;
}

Status check_batch_sizes(const InputRequest& request, const std::optional<SizeRange>& range) {
  for (const int64_t size : request.batch_sizes) {
    if (size < 1 || size > kMaxSize) {
      return Error{Code::kInvalidArgument,
                   format("a batch size is a whole number from 1 to {}, not {}", kMaxSize, size)};
    }
    if (range && (size < range->low || size > range->high)) {
      return Error{Code::kInvalidArgument,
                   format("the batch size {} is outside B={}..{}", size, range->low, range->high),
                   "give a size in it, or a wider range in the SPEC"};
    }
  }
  return {};
}

// The user's, else two small ones: what depends on the batch size shows at two.
std::vector<int64_t> sizes_to_record(const InputRequest& request,
                                     const std::optional<SizeRange>& range) {
  if (!request.batch_sizes.empty()) return request.batch_sizes;
  if (!range) return {1, 2};
  const int64_t first = std::max<int64_t>(1, range->low);
  if (first == range->high) return {first};
  return {first, first + 1};
}

// The largest calls that will be made of a graph.
Status check_largest(const PreparedGraph& graph, const InputRequest& request) {
  const std::vector<Tensor>& sample = graph.samples.front().inputs;
  const auto check = [&](const std::string& symbol, int64_t size) {
    return check_room(format("{} = {}", symbol, size),
                      bytes_of_symbol(graph.spec, sample, symbol, size), request.limit_bytes);
  };
  for (const TensorSpec& input : graph.spec.inputs) {
    for (const Axis& axis : input.axes) {
      if (axis.kind == AxisKind::kStatic) continue;
      HASTEN_TRY_STATUS(check(axis.symbol, axis.max / axis.multiplier));
      if (axis.kind != AxisKind::kBatch) continue;
      for (const int64_t size : request.batch_sizes) {
        HASTEN_TRY_STATUS(check(axis.symbol, size));
      }
    }
  }
  return {};
}

Result<std::vector<RecordedCall>> record(Request& given, const InputRequest& request,
                                         const Signature& signature) {
  for (const InputSpec& spec : given.specs) HASTEN_TRY_STATUS(check_spec(spec, signature));
  const std::optional<SizeRange> range = batch_range(given.specs);
  HASTEN_TRY_STATUS(check_batch_sizes(request, range));
  if (!given.files.empty()) return read_calls(given, signature);
  HASTEN_TRY(given.specs, in_model_order(given.specs, signature));
  return random_calls(given.specs, sizes_to_record(request, range), request.seed,
                      request.limit_bytes);
}

}  // namespace

uint64_t input_limit_bytes() {
  constexpr uint64_t kShare = 4;
  return available_memory_bytes() / kShare;
}

Result<PreparedInputs> prepare_inputs(const InputRequest& request, const Signature& signature) {
  PreparedInputs prepared;
  HASTEN_TRY(Request given, sort_out(request.inputs));
  if (request.inputs.empty()) {
    HASTEN_TRY(given.specs, specs_of(signature));
    if (!given.specs.empty()) {
      prepared.warnings.push_back(
          "no --input was given, so the values are random; real inputs prove more");
    }
  }
  HASTEN_TRY(std::vector<RecordedCall> calls, record(given, request, signature));
  std::vector<std::string> names;
  for (const ValueInfo& input : signature.inputs) names.push_back(input.name);
  for (RecordedGraph& graph : group_into_graphs(std::move(calls), names)) {
    HASTEN_TRY(PreparedGraph ready,
               prepare_graph(std::move(graph), given, signature, prepared.warnings));
    prepared.graphs.push_back(std::move(ready));
  }
  for (const InputSpec& spec : given.specs) {
    const auto fits = [&](const PreparedGraph& graph) { return is_about(spec, graph.spec); };
    if (std::ranges::none_of(prepared.graphs, fits)) {
      HASTEN_TRY_STATUS(declare(prepared.graphs.front().spec, std::span(&spec, 1)));
    }
  }
  for (const PreparedGraph& graph : prepared.graphs) {
    HASTEN_TRY_STATUS(check_largest(graph, request));
  }
  return prepared;
}

}  // namespace hasten
