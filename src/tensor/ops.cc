// SPDX-License-Identifier: Apache-2.0
#include "tensor/ops.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>

#include "base/text.h"
#include "tensor/strided.h"

namespace hasten {
namespace {

// A tensor seen from one of its axes: `outer` groups of `size` slabs of `inner_bytes`.
struct AxisView {
  size_t outer, size, inner_bytes;
};

AxisView along(const Tensor& tensor, size_t axis) {
  const std::span<const int64_t> shape = tensor.shape();
  if (axis >= shape.size()) {
    throw std::logic_error(format("axis {} of a tensor of shape {}", axis, shape_text(shape)));
  }
  return {element_count(shape.first(axis)), static_cast<size_t>(shape[axis]),
          element_count(shape.subspan(axis + 1)) * size_bytes(tensor.dtype())};
}

// The tensor itself when it is compact, else `storage`, which then holds a copy.
const Tensor& compacted(const Tensor& tensor, Tensor& storage) {
  if (tensor.is_compact()) return tensor;
  storage = tensor.clone();
  return storage;
}

Tensor resized(const Tensor& tensor, size_t axis, int64_t size) {
  Shape shape(tensor.shape().begin(), tensor.shape().end());
  shape[axis] = size;
  return Tensor::empty(tensor.dtype(), shape);
}

template <class T, class Load>
void append_doubles(const Tensor& tensor, std::vector<double>& out, Load load) {
  const auto* data = static_cast<const T*>(tensor.data());
  for_each_run<1>(tensor.shape(), {tensor.strides()},
                  [&](const auto& offsets, int64_t count, const auto& steps) {
                    for (int64_t i = 0; i < count; ++i) {
                      out.push_back(load(data[offsets[0] + i * steps[0]]));
                    }
                  });
}

template <class T>
void append_numbers(const Tensor& tensor, std::vector<double>& out) {
  append_doubles<T>(tensor, out, [](T v) { return static_cast<double>(v); });
}

template <class Real>
void append_moduli(const Tensor& tensor, std::vector<double>& out) {
  append_doubles<std::complex<Real>>(
      tensor, out, [](std::complex<Real> v) { return std::abs(std::complex<double>(v)); });
}

}  // namespace

double bytes_of(DType dtype, std::span<const int64_t> shape) {
  auto bytes = static_cast<double>(size_bytes(dtype));
  for (const int64_t size : shape) bytes *= static_cast<double>(size);
  return bytes;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t n : shape) text += (text.size() > 1 ? "," : "") + std::to_string(n);
  return text + "]";
}

Tensor cycled(const Tensor& tensor, size_t axis, int64_t size) {
  const AxisView view = along(tensor, axis);
  if (size < 0 || (size > 0 && view.size == 0)) {
    throw std::logic_error(format("cycled: {} entries of axis {} of shape {}", size, axis,
                                  shape_text(tensor.shape())));
  }
  Tensor storage;
  const auto* source = static_cast<const char*>(compacted(tensor, storage).data());
  Tensor result = resized(tensor, axis, size);
  if (result.nbytes() == 0) return result;
  auto* target = static_cast<char*>(result.data());
  const size_t wanted = static_cast<size_t>(size) * view.inner_bytes;
  const size_t period = view.size * view.inner_bytes;
  for (size_t group = 0; group < view.outer; ++group) {
    for (size_t done = 0; done < wanted; done += period) {
      std::memcpy(target + done, source, std::min(period, wanted - done));
    }
    source += period;
    target += wanted;
  }
  return result;
}

Tensor sliced(const Tensor& tensor, size_t axis, int64_t begin, int64_t end) {
  const AxisView view = along(tensor, axis);
  if (begin < 0 || end < begin || static_cast<size_t>(end) > view.size) {
    throw std::logic_error(format("sliced: [{}, {}) of axis {} of shape {}", begin, end, axis,
                                  shape_text(tensor.shape())));
  }
  const std::span<const int64_t> steps = tensor.strides();
  Shape shape(tensor.shape().begin(), tensor.shape().end());
  shape[axis] = end - begin;
  // A view of the part, which clone() makes compact whatever the strides were.
  const auto* data = static_cast<const char*>(tensor.data());
  const int64_t skipped =
      tensor.size() == 0 ? 0
                         : begin * steps[axis] * static_cast<int64_t>(size_bytes(tensor.dtype()));
  return Tensor::view_of(tensor.dtype(), const_cast<char*>(data) + skipped, std::move(shape),
                         Shape(steps.begin(), steps.end()), nullptr)
      .clone();
}

Result<Tensor> concatenated(std::span<const Tensor> parts, size_t axis) {
  if (parts.empty()) return Error{Code::kInvalidArgument, "no tensors to concatenate"};
  Shape shape(parts[0].shape().begin(), parts[0].shape().end());
  if (axis >= shape.size()) {
    return Error{Code::kInvalidArgument, format("cannot concatenate tensors of shape {} at axis {}",
                                                shape_text(shape), axis)};
  }
  int64_t total = 0;
  for (const Tensor& part : parts) {
    if (part.dtype() != parts[0].dtype()) {
      return Error{Code::kInvalidArgument,
                   format("cannot concatenate {} with {}", to_string(parts[0].dtype()),
                          to_string(part.dtype()))};
    }
    Shape other(part.shape().begin(), part.shape().end());
    const int64_t size = axis < other.size() ? other[axis] : 0;
    if (axis < other.size()) other[axis] = shape[axis];
    if (other != shape) {
      return Error{Code::kInvalidArgument,
                   format("cannot concatenate shape {} with {} at axis {}",
                          shape_text(parts[0].shape()), shape_text(part.shape()), axis)};
    }
    total += size;
  }
  Tensor result = resized(parts[0], axis, total);
  const AxisView whole = along(result, axis);
  size_t done = 0;  // Bytes of a group that earlier parts have filled.
  for (const Tensor& part : parts) {
    const AxisView view = along(part, axis);
    const size_t bytes = view.size * view.inner_bytes;
    Tensor storage;
    const auto* source = static_cast<const char*>(compacted(part, storage).data());
    auto* target = static_cast<char*>(result.data()) + done;
    for (size_t group = 0; bytes > 0 && group < view.outer; ++group) {
      std::memcpy(target + group * whole.size * whole.inner_bytes, source + group * bytes, bytes);
    }
    done += bytes;
  }
  return result;
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> out;
  out.reserve(tensor.size());
  switch (tensor.dtype()) {
    case DType::kBool:
      append_doubles<uint8_t>(tensor, out, [](uint8_t v) { return v ? 1.0 : 0.0; });
      break;
    case DType::kUInt8:
      append_numbers<uint8_t>(tensor, out);
      break;
    case DType::kInt8:
      append_numbers<int8_t>(tensor, out);
      break;
    case DType::kUInt16:
      append_numbers<uint16_t>(tensor, out);
      break;
    case DType::kInt16:
      append_numbers<int16_t>(tensor, out);
      break;
    case DType::kUInt32:
      append_numbers<uint32_t>(tensor, out);
      break;
    case DType::kInt32:
      append_numbers<int32_t>(tensor, out);
      break;
    case DType::kUInt64:
      append_numbers<uint64_t>(tensor, out);
      break;
    case DType::kInt64:
      append_numbers<int64_t>(tensor, out);
      break;
    case DType::kFloat16:
      append_doubles<uint16_t>(tensor, out, half_to_float);
      break;
    case DType::kBFloat16:
      append_doubles<uint16_t>(tensor, out, bfloat16_to_float);
      break;
    case DType::kFloat32:
      append_numbers<float>(tensor, out);
      break;
    case DType::kFloat64:
      append_numbers<double>(tensor, out);
      break;
    case DType::kComplex64:
      append_moduli<float>(tensor, out);
      break;
    case DType::kComplex128:
      append_moduli<double>(tensor, out);
      break;
  }
  return out;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = bits & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  // Subnormal: an integer times 2^-24, which float holds exactly.
  const float value = static_cast<float>(rest) * 0x1p-24f;
  return sign ? -value : value;
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) {  // NaN: quiet, with what fits of its payload.
    return static_cast<uint16_t>(sign | 0x7e00 | (rest >> 13 & 0x1ff));
  }
  if (rest >= 0x477ff000) return sign | 0x7c00;  // From 65520 on, halfway beyond the largest.
  if (rest < 0x38800000) {                       // Below 2^-14: subnormal.
    // Adding 0.5 leaves the value in units of 2^-24 in the low bits, rounded by the FPU.
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = rest >> 13 & 1;
  return static_cast<uint16_t>(sign | ((rest - (112u << 23) + 0xfff + odd) >> 13));
}

uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace hasten
