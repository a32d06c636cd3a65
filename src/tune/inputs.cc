// SPDX-License-Identifier: Apache-2.0
#include "tune/inputs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include "base/text.h"
#include "model/samples.h"
#include "tensor/npz.h"
#include "tensor/ops.h"

namespace hasten {
namespace {

// Sizes of a dynamic axis whose range nobody gave: two, so that an exporter which
// bakes one in is found out, and neither 0 nor 1, which exporters specialise on.
constexpr int64_t kFirstSize = 12;
constexpr int64_t kSecondSize = 20;

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
  return request;
}

// A symbol of the model's own that stands for the batch: the one at axis 0 of the
// first input that has one there.
std::string batch_symbol(const Signature& signature) {
  for (const ValueInfo& input : signature.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    if (const auto* symbol = std::get_if<std::string>(&input.shape->front())) return *symbol;
    return "";
  }
  return "";
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

// SPECs that say what the model file says, for a user who gave no input at all.
Result<std::vector<InputSpec>> specs_of(const Signature& signature) {
  const std::string batch = batch_symbol(signature);
  std::vector<InputSpec> specs;
  for (const ValueInfo& input : signature.inputs) {
    if (input.optional) continue;
    if (!input.foreign_dtype.empty()) {
      return Error{Code::kUnsupported, format("the model takes '{}' as {}, a dtype that hasten has "
                                              "no name for",
                                              input.name, input.foreign_dtype)};
    }
    if (!input.dtype || !input.shape) {
      return Error{Code::kInvalidArgument,
                   format("the model does not say what its input '{}' looks like", input.name),
                   format("give --input FILE.npz, or --input '{}=float32[B,...]'", input.name)};
    }
    InputSpec spec{.name = input.name, .dtype = *input.dtype, .axes = {}, .values = {}};
    for (size_t i = 0; i < input.shape->size(); ++i) {
      Axis axis;
      if (const auto* size = std::get_if<int64_t>(&(*input.shape)[i])) {
        axis.min = axis.max = *size;
      } else {
        const std::string& symbol = std::get<std::string>((*input.shape)[i]);
        const bool is_batch = symbol == batch && (!symbol.empty() || i == 0);
        axis.kind = is_batch ? AxisKind::kBatch : AxisKind::kDynamic;
        axis.symbol = is_batch ? "B" : symbol.empty() ? format("{}_{}", input.name, i) : symbol;
      }
      spec.axes.push_back(axis);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

// That what a SPEC says is possible in the model.
Status check_spec(const InputSpec& spec, const Signature& signature) {
  const auto input = std::ranges::find(signature.inputs, spec.name, &ValueInfo::name);
  if (input == signature.inputs.end()) {
    std::vector<std::string> known;
    for (const ValueInfo& one : signature.inputs) known.push_back(one.name);
    const std::optional<std::string> meant = closest(spec.name, known);
    return Error{Code::kInvalidArgument,
                 format("the model has no input '{}'; it has {}", spec.name, join(known, ", ")),
                 meant ? format("did you mean '{}'?", *meant) : ""};
  }
  if (input->dtype && *input->dtype != spec.dtype) {
    return Error{Code::kInvalidArgument,
                 format("the SPEC says {} for '{}', the model takes {}", to_string(spec.dtype),
                        spec.name, to_string(*input->dtype))};
  }
  if (!input->shape) return {};
  if (input->shape->size() != spec.axes.size()) {
    return Error{Code::kInvalidArgument,
                 format("the SPEC gives '{}' {} axes, the model {}", spec.name, spec.axes.size(),
                        input->shape->size())};
  }
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    const auto* size = std::get_if<int64_t>(&(*input->shape)[i]);
    const Axis& axis = spec.axes[i];
    if (size && (axis.kind != AxisKind::kStatic || axis.min != *size)) {
      return Error{
          Code::kInvalidArgument,
          format("axis {} of '{}' is {} in the model; the SPEC says {}", i, spec.name, *size,
                 axis.kind == AxisKind::kStatic ? format("{}", axis.min) : axis.symbol)};
    }
  }
  return {};
}

// The SPECs in the model's order, one for each input.
Result<std::vector<InputSpec>> in_model_order(const std::vector<InputSpec>& specs,
                                              const Signature& signature) {
  std::vector<InputSpec> ordered;
  for (const ValueInfo& input : signature.inputs) {
    const auto found = std::ranges::find(specs, input.name, &InputSpec::name);
    if (found != specs.end()) {
      ordered.push_back(*found);
      continue;
    }
    if (input.optional) break;
    return Error{Code::kInvalidArgument, format("the input '{}' is not given", input.name),
                 format("add --input '{}={}[...]'", input.name,
                        input.dtype ? to_string(*input.dtype) : "float32")};
  }
  return ordered;
}

// The sizes that the dynamic symbols take in the call number `i`.
int64_t dynamic_size(const Axis& axis, size_t i) {
  if (axis.max <= axis.min) return i % 2 == 0 ? kFirstSize : kSecondSize;
  // A third and two thirds of the range: away from its ends, which the check visits.
  const int64_t third = (axis.max - axis.min) / 3;
  return i % 2 == 0 ? axis.min + third : axis.max - third;
}

std::vector<RecordedCall> random_calls(const std::vector<InputSpec>& specs,
                                       const InputRequest& request) {
  std::vector<RecordedCall> calls;
  for (size_t i = 0; i < request.batch_sizes.size(); ++i) {
    const int64_t batch = request.batch_sizes[i];
    RecordedCall call;
    call.batch_size = batch;
    call.sample.origin = format("random values at batch {}", batch);
    for (size_t k = 0; k < specs.size(); ++k) {
      Shape shape;
      for (const Axis& axis : specs[k].axes) {
        shape.push_back(axis.kind == AxisKind::kStatic  ? axis.min
                        : axis.kind == AxisKind::kBatch ? axis.multiplier * batch
                                                        : dynamic_size(axis, i));
      }
      std::optional<FillRange> range;
      if (specs[k].values) range = FillRange{specs[k].values->first, specs[k].values->second};
      const uint64_t seed = request.seed + 1000 * (i + 1) + k;
      call.sample.inputs.push_back(random_tensor(specs[k].dtype, shape, seed, range));
    }
    calls.push_back(std::move(call));
  }
  return calls;
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

}  // namespace

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
  for (const InputSpec& spec : given.specs) HASTEN_TRY_STATUS(check_spec(spec, signature));
  const bool from_specs = given.files.empty();
  if (from_specs) {
    HASTEN_TRY(given.specs, in_model_order(given.specs, signature));
  }
  std::vector<RecordedCall> calls;
  if (from_specs) {
    calls = random_calls(given.specs, request);
  } else {
    HASTEN_TRY(calls, read_calls(given, signature));
  }
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
  return prepared;
}

}  // namespace hasten
