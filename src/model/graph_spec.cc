// SPDX-License-Identifier: Apache-2.0
#include "model/graph_spec.h"

#include "base/text.h"
#include "tensor/ops.h"

#include <algorithm>

namespace hasten {
namespace {

std::string dtype_text(DLDataType type) {
  if (const auto dtype = dtype_from_dlpack(type)) return std::string(to_string(*dtype));
  return format("a dtype without a name here (DLPack code {}, {} bits, {} lanes)", type.code,
                type.bits, type.lanes);
}

// What a symbol stands for in one call, and which axis said so.
struct Binding {
  std::string_view symbol;
  int64_t size;
  std::string_view input;
  size_t axis;
};

Status accept_axis(const TensorSpec& spec, size_t a, int64_t size, std::vector<Binding>& bound) {
  const Axis& axis = spec.axes[a];
  if (axis.kind == AxisKind::kStatic) {
    if (size == axis.min) return {};
    return Error{Code::kInvalidArgument,
                 format("input '{}': axis {} must be {}, not {}", spec.name, a, axis.min, size)};
  }
  if (size < 0 || size % axis.multiplier != 0) {
    return Error{Code::kInvalidArgument,
                 format("input '{}': axis {} ({}) is {}, which is no multiple of {}", spec.name, a,
                        symbol_text(axis), size, axis.multiplier)};
  }
  const int64_t value = size / axis.multiplier;
  const auto same = [&](const Binding& b) { return b.symbol == axis.symbol; };
  const auto earlier = std::ranges::find_if(bound, same);
  if (earlier == bound.end()) {
    bound.push_back({axis.symbol, value, spec.name, a});
    return {};
  }
  if (earlier->size == value) return {};
  return Error{Code::kInvalidArgument,
               format("input '{}': axis {} ({}) must be {}, not {}: axis {} of '{}' makes {} {}",
                      spec.name, a, symbol_text(axis), earlier->size * axis.multiplier, size,
                      earlier->axis, earlier->input, axis.symbol, earlier->size)};
}

Status accept_tensor(const TensorSpec& spec, const DLTensor& view, std::vector<Binding>& bound) {
  if (view.device.device_type != kDLCPU) {
    return Error{Code::kInvalidArgument, format("input '{}' is not in host memory", spec.name),
                 "copy it to the CPU first"};
  }
  if (dtype_from_dlpack(view.dtype) != spec.dtype) {
    return Error{Code::kInvalidArgument,
                 format("input '{}' is {}, not {}", spec.name, dtype_text(view.dtype),
                        to_string(spec.dtype)),
                 format("convert it to {} first", to_string(spec.dtype))};
  }
  if (view.ndim < 0 || static_cast<size_t>(view.ndim) != spec.axes.size()) {
    return Error{Code::kInvalidArgument,
                 format("input '{}' has rank {} (shape {}), not {}: {}", spec.name, view.ndim,
                        shape_text(std::span(view.shape, static_cast<size_t>(std::max(0, view.ndim)))), spec.axes.size(), spec.describe())};
  }
  for (size_t a = 0; a < spec.axes.size(); ++a) {
    HASTEN_TRY_STATUS(accept_axis(spec, a, view.shape[a], bound));
  }
  return {};
}

Tensor with_axis(const Tensor& tensor, size_t axis, int64_t size) {
  if (tensor.shape()[axis] != 0 || size == 0) return cycled(tensor, axis, size);
  // There is no row to repeat: zeros are as good as any value.
  Shape shape(tensor.shape().begin(), tensor.shape().end());
  shape[axis] = size;
  return Tensor::zeros(tensor.dtype(), shape);
}

bool is_batch(const Axis& axis) { return axis.kind == AxisKind::kBatch; }
bool is_of(const Axis& axis, const std::string& symbol) {
  return axis.kind != AxisKind::kStatic && axis.symbol == symbol;
}

template <class Chosen>
std::vector<Tensor> resized(const GraphSpec& graph, std::span<const Tensor> inputs, int64_t size,
                            Chosen chosen) {
  if (inputs.size() != graph.inputs.size()) {
    throw std::logic_error("resizing a sample of another graph");
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor = inputs[i].clone();
    const std::vector<Axis>& axes = graph.inputs[i].axes;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (chosen(axes[a])) tensor = with_axis(tensor, a, axes[a].multiplier * size);
    }
    out.push_back(std::move(tensor));
  }
  return out;
}

template <class Chosen>
double bytes_resized(const GraphSpec& graph, std::span<const Tensor> inputs, int64_t size,
                     Chosen chosen) {
  double bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape shape(inputs[i].shape().begin(), inputs[i].shape().end());
    for (size_t a = 0; a < shape.size(); ++a) {
      const Axis& axis = graph.inputs[i].axes[a];
      if (chosen(axis)) shape[a] = axis.multiplier * size;
    }
    bytes += bytes_of(inputs[i].dtype(), shape);
  }
  return bytes;
}

}  // namespace

std::string symbol_text(const Axis& axis) {
  if (axis.kind == AxisKind::kStatic) return std::to_string(axis.min);
  return axis.multiplier == 1 ? axis.symbol : format("{}*{}", axis.multiplier, axis.symbol);
}

std::string describe(const Axis& axis) {
  if (axis.kind == AxisKind::kStatic || axis.max == 0) return symbol_text(axis);
  const int64_t low = axis.min / axis.multiplier, high = axis.max / axis.multiplier;
  if (low == high) return format("{}={}", symbol_text(axis), low);
  return format("{}={}..{}", symbol_text(axis), low, high);
}

std::string TensorSpec::describe() const {
  std::vector<std::string> parts;
  for (const Axis& axis : axes) parts.push_back(hasten::describe(axis));
  return format("{} {}[{}]", name, to_string(dtype), join(parts, ","));
}

bool GraphSpec::has_batch_axis() const {
  return std::ranges::any_of(
      inputs, [](const TensorSpec& spec) { return std::ranges::any_of(spec.axes, is_batch); });
}

int64_t GraphSpec::min_batch() const {
  std::optional<int64_t> least;
  for (const TensorSpec& spec : inputs) {
    for (const Axis& axis : spec.axes) {
      if (axis.kind != AxisKind::kBatch) continue;
      const int64_t size = axis.min / axis.multiplier;
      least = least ? std::min(*least, size) : size;
    }
  }
  return least.value_or(1);
}

int64_t GraphSpec::max_batch() const {
  std::optional<int64_t> most;
  for (const TensorSpec& spec : inputs) {
    for (const Axis& axis : spec.axes) {
      if (axis.kind != AxisKind::kBatch) continue;
      const int64_t size = axis.max / axis.multiplier;
      most = most ? std::max(*most, size) : size;
    }
  }
  return most.value_or(1);
}

std::optional<int64_t> GraphSpec::batch_of(std::span<const Tensor> tensors) const {
  if (!same_structure(tensors)) return std::nullopt;
  std::optional<int64_t> batch;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t a = 0; a < inputs[i].axes.size(); ++a) {
      const Axis& axis = inputs[i].axes[a];
      if (axis.kind != AxisKind::kBatch) continue;
      const int64_t size = tensors[i].shape()[a];
      if (size % axis.multiplier != 0) return std::nullopt;
      if (batch && *batch != size / axis.multiplier) return std::nullopt;
      batch = size / axis.multiplier;
    }
  }
  return batch;
}

Status GraphSpec::accepts(std::span<const DLTensor> tensors) const {
  if (tensors.size() != inputs.size()) {
    std::vector<std::string> names;
    for (const TensorSpec& spec : inputs) names.push_back(spec.name);
    return Error{Code::kInvalidArgument, format("{} inputs given, not {} ({})", tensors.size(),
                                                inputs.size(), join(names, ", "))};
  }
  std::vector<Binding> bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HASTEN_TRY_STATUS(accept_tensor(inputs[i], tensors[i], bound));
  }
  return {};
}

bool GraphSpec::same_structure(std::span<const Tensor> tensors) const {
  return std::ranges::equal(tensors, inputs, [](const Tensor& tensor, const TensorSpec& spec) {
    return tensor.dtype() == spec.dtype && tensor.shape().size() == spec.axes.size();
  });
}

std::vector<Tensor> make_batch(const GraphSpec& graph, std::span<const Tensor> inputs,
                               int64_t batch_size) {
  return resized(graph, inputs, batch_size, is_batch);
}

std::vector<Tensor> resize_symbol(const GraphSpec& graph, std::span<const Tensor> inputs,
                                  const std::string& symbol, int64_t size) {
  return resized(graph, inputs, size, [&](const Axis& axis) { return is_of(axis, symbol); });
}

double bytes_of_batch(const GraphSpec& graph, std::span<const Tensor> inputs, int64_t batch_size) {
  return bytes_resized(graph, inputs, batch_size, is_batch);
}

double bytes_of_symbol(const GraphSpec& graph, std::span<const Tensor> inputs,
                       const std::string& symbol, int64_t size) {
  return bytes_resized(graph, inputs, size, [&](const Axis& axis) { return is_of(axis, symbol); });
}

}  // namespace hasten
