// SPDX-License-Identifier: Apache-2.0
#include "tune/specs.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/text.h"
#include "tensor/ops.h"

namespace hasten {
namespace {

// Sizes of a dynamic axis whose range nobody gave: two, so that an exporter which
// bakes one in is found out, and neither 0 nor 1, which exporters specialise on.
constexpr int64_t kFirstSize = 12;
constexpr int64_t kSecondSize = 20;

bool has_range(const Axis& axis) { return axis.kind != AxisKind::kStatic && axis.max > 0; }

SizeRange range_of(const Axis& axis) {
  return {axis.min / axis.multiplier, axis.max / axis.multiplier};
}

// What a symbol stands for in the call number `i`: one size, wherever the symbol stands.
int64_t dynamic_size(const Axis& axis, size_t i) {
  if (!has_range(axis)) return i % 2 == 0 ? kFirstSize : kSecondSize;
  const SizeRange range = range_of(axis);
  // A third and two thirds of the range: away from its ends, which the check visits.
  const int64_t third = (range.high - range.low) / 3;
  return i % 2 == 0 ? range.low + third : range.high - third;
}

Shape shape_of(const InputSpec& spec, int64_t batch, size_t i) {
  Shape shape;
  for (const Axis& axis : spec.axes) {
    shape.push_back(axis.kind == AxisKind::kStatic  ? axis.min
                    : axis.kind == AxisKind::kBatch ? axis.multiplier * batch
                                                    : axis.multiplier * dynamic_size(axis, i));
  }
  return shape;
}

// "B = 2, T = 12"
std::string sizes_text(const std::vector<InputSpec>& specs, int64_t batch, size_t i) {
  std::map<std::string, int64_t> sizes = {{"B", batch}};
  for (const InputSpec& spec : specs) {
    for (const Axis& axis : spec.axes) {
      if (axis.kind == AxisKind::kDynamic) sizes[axis.symbol] = dynamic_size(axis, i);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [symbol, size] : sizes) parts.push_back(format("{} = {}", symbol, size));
  return join(parts, ", ");
}

}  // namespace

std::string batch_symbol(const Signature& signature) {
  for (const ValueInfo& input : signature.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    if (const auto* symbol = std::get_if<std::string>(&input.shape->front())) return *symbol;
    return "";
  }
  return "";
}

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

Status share_ranges(std::vector<InputSpec>& specs) {
  std::map<std::string, SizeRange> ranges;
  for (const InputSpec& spec : specs) {
    for (const Axis& axis : spec.axes) {
      if (!has_range(axis)) continue;
      const SizeRange range = range_of(axis);
      const auto [known, is_new] = ranges.emplace(axis.symbol, range);
      if (is_new || known->second == range) continue;
      return Error{Code::kInvalidArgument,
                   format("the SPECs say {0}={1}..{2} and {0}={3}..{4}", axis.symbol,
                          known->second.low, known->second.high, range.low, range.high),
                   "equal symbols are equal sizes: give the range once, or another symbol"};
    }
  }
  for (InputSpec& spec : specs) {
    for (Axis& axis : spec.axes) {
      const auto known = ranges.find(axis.symbol);
      if (axis.kind == AxisKind::kStatic || known == ranges.end()) continue;
      axis.min = axis.multiplier * known->second.low;
      axis.max = axis.multiplier * known->second.high;
    }
  }
  return {};
}

std::optional<SizeRange> batch_range(const std::vector<InputSpec>& specs) {
  for (const InputSpec& spec : specs) {
    for (const Axis& axis : spec.axes) {
      if (axis.kind == AxisKind::kBatch && has_range(axis)) return range_of(axis);
    }
  }
  return std::nullopt;
}

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

Result<std::vector<InputSpec>> in_model_order(const std::vector<InputSpec>& specs,
                                              const Signature& signature) {
  const auto spec_of = [&](const ValueInfo& input) {
    return std::ranges::find(specs, input.name, &InputSpec::name);
  };
  // Engines take inputs in order: only the end can be left out.
  size_t given = signature.inputs.size();
  while (given > 0 && signature.inputs[given - 1].optional &&
         spec_of(signature.inputs[given - 1]) == specs.end()) {
    --given;
  }
  std::vector<InputSpec> ordered;
  for (const ValueInfo& input : std::span(signature.inputs).first(given)) {
    const auto found = spec_of(input);
    if (found == specs.end()) {
      const std::string form = format("add --input '{}={}[...]'", input.name,
                                      input.dtype ? to_string(*input.dtype) : "float32");
      return Error{Code::kInvalidArgument, format("the input '{}' is not given", input.name),
                   input.optional
                       ? form + "; an optional input can only be left out with all behind it"
                       : form};
    }
    ordered.push_back(*found);
  }
  return ordered;
}

Result<std::vector<RecordedCall>> random_calls(const std::vector<InputSpec>& specs,
                                               const std::vector<int64_t>& batch_sizes,
                                               uint64_t seed, uint64_t limit_bytes) {
  std::vector<RecordedCall> calls;
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    const int64_t batch = batch_sizes[i];
    double bytes = 0;
    for (const InputSpec& spec : specs) bytes += bytes_of(spec.dtype, shape_of(spec, batch, i));
    HASTEN_TRY_STATUS(check_room(sizes_text(specs, batch, i), bytes, limit_bytes));
    RecordedCall call;
    call.batch_size = batch;
    call.sample.origin = format("random values at batch {}", batch);
    for (size_t k = 0; k < specs.size(); ++k) {
      std::optional<FillRange> range;
      if (specs[k].values) range = FillRange{specs[k].values->first, specs[k].values->second};
      call.sample.inputs.push_back(random_tensor(specs[k].dtype, shape_of(specs[k], batch, i),
                                                 seed + 1000 * (i + 1) + k, range));
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

Status check_room(std::string_view at, double bytes, uint64_t limit_bytes) {
  if (bytes <= static_cast<double>(limit_bytes)) return {};
  constexpr double kMost = 1e19;  // What human_size() can say.
  return Error{Code::kInvalidArgument,
               format("at {} the inputs of one call take {}, and there is room for {}", at,
                      human_size(static_cast<uint64_t>(std::min(bytes, kMost))),
                      human_size(limit_bytes)),
               "give smaller sizes, or a smaller range in the SPEC"};
}

}  // namespace hasten
