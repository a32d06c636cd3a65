// SPDX-License-Identifier: Apache-2.0
// Tensors for plugins whose framework speaks no DLPack: is a view compact, copy it
// compactly, own an output. Header-only and no part of the ABI, like plugin.hpp.
#pragma once

#include <hasten/plugin.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

inline std::span<const int64_t> shape_of(const DLTensor& t) {
  return {t.shape, static_cast<size_t>(t.ndim)};
}
inline size_t element_bytes(DLDataType type) {
  return (static_cast<size_t>(type.bits) * type.lanes + 7) / 8;
}
inline size_t count_of(std::span<const int64_t> shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}
inline size_t bytes_of(const DLTensor& t) { return count_of(shape_of(t)) * element_bytes(t.dtype); }
inline void* data_of(const DLTensor& t) { return static_cast<std::byte*>(t.data) + t.byte_offset; }

// Row-major without gaps. Strides of axes of size 1 and of empty tensors do not count.
inline bool is_compact(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  bool compact = true;
  for (int32_t i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.strides[i] != expected) compact = false;
    expected *= t.shape[i];
  }
  return compact;
}

namespace plugin_detail {

inline std::byte* copy_axis(const DLTensor& t, size_t width, int32_t axis, const std::byte* from,
                            std::byte* to) {
  if (axis == t.ndim) {
    std::memcpy(to, from, width);
    return to + width;
  }
  const int64_t step = t.strides[axis] * static_cast<int64_t>(width);
  for (int64_t i = 0; i < t.shape[axis]; ++i) {
    to = copy_axis(t, width, axis + 1, from + i * step, to);
  }
  return to;
}

}  // namespace plugin_detail

// `to` has room for bytes_of(t).
inline void copy_compact(const DLTensor& t, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(data_of(t));
  if (is_compact(t)) {
    if (const size_t size = bytes_of(t)) std::memcpy(to, from, size);
    return;
  }
  plugin_detail::copy_axis(t, element_bytes(t.dtype), 0, from, to);
}

inline void write_compact_strides(std::span<const int64_t> shape, int64_t* strides) {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
}

// A compact tensor in one allocation: DLPack header, shape and strides, then the
// elements from a multiple of 64 on. Contents undefined.
inline OwnedTensor make_owned(DLDataType dtype, std::span<const int64_t> shape) {
  constexpr size_t kAlignment = 64;  // A cache line, and the widest vector of a CPU.
  const size_t head = sizeof(DLManagedTensorVersioned) + 2 * shape.size_bytes();
  const size_t start = (head + kAlignment - 1) / kAlignment * kAlignment;
  const size_t size = count_of(shape) * element_bytes(dtype);
  auto* block =
      static_cast<std::byte*>(::operator new (start + size, std::align_val_t{kAlignment}));
  auto* managed = new (block) DLManagedTensorVersioned{};
  auto* dims = reinterpret_cast<int64_t*>(block + sizeof(DLManagedTensorVersioned));
  if (!shape.empty()) std::memcpy(dims, shape.data(), shape.size_bytes());
  write_compact_strides(shape, dims + shape.size());
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->dl_tensor = {.data = block + start,
                        .device = {kDLCPU, 0},
                        .ndim = static_cast<int32_t>(shape.size()),
                        .dtype = dtype,
                        .shape = dims,
                        .strides = dims + shape.size(),
                        .byte_offset = 0};
  managed->deleter = [](DLManagedTensorVersioned* self) {
    ::operator delete (self, std::align_val_t{kAlignment});
  };
  return OwnedTensor(managed);
}

// The view's own data when it is compact, else that of a compact copy in `scratch`.
inline void* compact_data(const DLTensor& t, OwnedTensor& scratch) {
  if (is_compact(t)) return data_of(t);
  scratch = make_owned(t.dtype, shape_of(t));
  copy_compact(t, static_cast<std::byte*>(scratch->dl_tensor.data));
  return scratch->dl_tensor.data;
}

// Storage for `size` values on the stack when they are few.
template <class T, size_t Few = plugin_detail::kOutputsOnStack>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > Few) many_.resize(size);
  }
  T* data() { return size_ > Few ? many_.data() : few_.data(); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

 private:
  size_t size_;
  std::array<T, Few> few_{};
  std::vector<T> many_;
};

inline std::string dtype_text(DLDataType type) {
  constexpr std::array<std::string_view, 7> kNames = {"int",    "uint",    "float", "handle",
                                                      "bfloat", "complex", "bool"};
  if (type.code == kDLBool) return "bool";
  std::string name = type.code < kNames.size() ? std::string(kNames[type.code])
                                               : "dtype" + std::to_string(type.code) + "_";
  name += std::to_string(static_cast<int>(type.bits));
  return type.lanes == 1 ? name : name + "x" + std::to_string(type.lanes);
}

inline std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (const int64_t size : shape) {
    out += (out.size() > 1 ? "," : "") + (size < 0 ? "?" : std::to_string(size));
  }
  return out + "]";
}

// What an executable takes: for the check at the door of run().
struct PortSpec {
  std::string name;
  DLDataType dtype{};
  bool any_rank = false;
  std::vector<int64_t> shape;  // -1: any size.
};

// Throws HASTEN_INVALID_ARGUMENT with the name of the input.
inline void check_inputs(std::span<const PortSpec> ports, std::span<const DLTensor> inputs,
                         size_t n_wanted_outputs, size_t n_outputs) {
  if (inputs.size() != ports.size() || n_outputs != n_wanted_outputs) {
    throw PluginError(HASTEN_INVALID_ARGUMENT,
                      "takes " + std::to_string(ports.size()) + " inputs and gives " +
                          std::to_string(n_wanted_outputs) + " outputs, not " +
                          std::to_string(inputs.size()) + " and " + std::to_string(n_outputs));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortSpec& port = ports[i];
    const DLTensor& t = inputs[i];
    const bool same_type = t.dtype.code == port.dtype.code && t.dtype.bits == port.dtype.bits &&
                           t.dtype.lanes == port.dtype.lanes;
    bool fits = port.any_rank || static_cast<size_t>(t.ndim) == port.shape.size();
    for (size_t axis = 0; fits && axis < port.shape.size(); ++axis) {
      fits = port.shape[axis] < 0 || port.shape[axis] == t.shape[axis];
    }
    if (same_type && fits && t.device.device_type == kDLCPU) continue;
    throw PluginError(HASTEN_INVALID_ARGUMENT,
                      "input '" + port.name + "' is " + dtype_text(port.dtype) +
                          (port.any_rank ? "" : shape_text(port.shape)) + ", not " +
                          dtype_text(t.dtype) + shape_text(shape_of(t)) +
                          (t.device.device_type == kDLCPU ? "" : " on another device"));
  }
}

}  // namespace hasten
