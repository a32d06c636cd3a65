// SPDX-License-Identifier: Apache-2.0
// Tensors of the fake backend: compact copies, and arithmetic on them.
#pragma once

#include <hasten/plugin.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace fake {

struct Dense {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  size_t item_bytes() const { return (dtype.bits * dtype.lanes + 7u) / 8u; }
  int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  size_t row_bytes() const { return rows() > 0 ? data.size() / static_cast<size_t>(rows()) : 0; }
};

inline size_t count(const std::vector<int64_t>& shape) {
  size_t n = 1;
  for (const int64_t size : shape) n *= static_cast<size_t>(size);
  return n;
}

inline void copy_strided(const DLTensor& t, int axis, const std::byte* from, size_t item,
                         std::byte*& to) {
  if (axis == t.ndim) {
    std::memcpy(to, from, item);
    to += item;
    return;
  }
  for (int64_t i = 0; i < t.shape[axis]; ++i) {
    copy_strided(t, axis + 1, from + i * t.strides[axis] * static_cast<int64_t>(item), item, to);
  }
}

inline Dense dense(const DLTensor& t) {
  Dense d;
  d.dtype = t.dtype;
  d.shape.assign(t.shape, t.shape + t.ndim);
  d.data.resize(count(d.shape) * d.item_bytes());
  std::byte* to = d.data.data();
  copy_strided(t, 0, static_cast<const std::byte*>(t.data) + t.byte_offset, d.item_bytes(), to);
  return d;
}

// What a returned tensor needs to stay alive: its own bytes, or somebody else's.
struct Holder {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape, strides;
  std::shared_ptr<std::vector<std::byte>> data;
};

inline hasten::OwnedTensor managed(const Dense& like, std::shared_ptr<std::vector<std::byte>> bytes,
                                   void* data) {
  auto holder = std::make_unique<Holder>();
  holder->shape = like.shape;
  holder->strides.assign(like.shape.size(), 1);
  for (size_t i = like.shape.size(); i-- > 1;) {
    holder->strides[i - 1] = holder->strides[i] * like.shape[i];
  }
  holder->data = std::move(bytes);
  DLManagedTensorVersioned& m = holder->managed;
  m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m.manager_ctx = holder.get();
  m.deleter = [](DLManagedTensorVersioned* self) {
    delete static_cast<Holder*>(self->manager_ctx);
  };
  m.dl_tensor = {.data = data,
                 .device = {kDLCPU, 0},
                 .ndim = static_cast<int32_t>(holder->shape.size()),
                 .dtype = like.dtype,
                 .shape = holder->shape.data(),
                 .strides = holder->strides.data(),
                 .byte_offset = 0};
  return hasten::OwnedTensor(&holder.release()->managed);
}

inline hasten::OwnedTensor managed(Dense d) {
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(d.data));
  void* data = bytes->data();
  return managed(d, std::move(bytes), data);
}

// Calls `body` with a null pointer of the C++ type of `dtype`.
template <class F>
void with_type(DLDataType dtype, F&& body) {
  const int code = dtype.code;
  if (code == kDLFloat && dtype.bits == 32) return body(static_cast<float*>(nullptr));
  if (code == kDLFloat && dtype.bits == 64) return body(static_cast<double*>(nullptr));
  if (code == kDLInt && dtype.bits == 8) return body(static_cast<int8_t*>(nullptr));
  if (code == kDLInt && dtype.bits == 16) return body(static_cast<int16_t*>(nullptr));
  if (code == kDLInt && dtype.bits == 32) return body(static_cast<int32_t*>(nullptr));
  if (code == kDLInt && dtype.bits == 64) return body(static_cast<int64_t*>(nullptr));
  if (code == kDLUInt && dtype.bits == 8) return body(static_cast<uint8_t*>(nullptr));
  if (code == kDLUInt && dtype.bits == 16) return body(static_cast<uint16_t*>(nullptr));
  if (code == kDLUInt && dtype.bits == 32) return body(static_cast<uint32_t*>(nullptr));
  if (code == kDLUInt && dtype.bits == 64) return body(static_cast<uint64_t*>(nullptr));
  throw hasten::PluginError(HASTEN_UNSUPPORTED, "fake: no arithmetic for this dtype");
}

// f(x), element by element, in the tensor's own type.
template <class F>
Dense mapped(const Dense& in, F&& f) {
  Dense out = in;
  with_type(in.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* values = reinterpret_cast<T*>(out.data.data());
    for (size_t i = 0; i < count(out.shape); ++i) values[i] = static_cast<T>(f(values[i]));
  });
  return out;
}

inline Dense sum(const Dense& a, const Dense& b) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) {
    throw hasten::PluginError(HASTEN_INVALID_ARGUMENT, "fake: add wants two equal shapes");
  }
  Dense out = a;
  with_type(a.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* values = reinterpret_cast<T*>(out.data.data());
    const T* others = reinterpret_cast<const T*>(b.data.data());
    for (size_t i = 0; i < count(out.shape); ++i) {
      values[i] = static_cast<T>(values[i] + others[i]);
    }
  });
  return out;
}

// One number per row: the sum over every axis but the first.
inline Dense row_sums(const Dense& in) {
  Dense out{.dtype = in.dtype, .shape = {in.rows()}, .data = {}};
  out.data.resize(static_cast<size_t>(in.rows()) * in.item_bytes());
  with_type(in.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* from = reinterpret_cast<const T*>(in.data.data());
    T* to = reinterpret_cast<T*>(out.data.data());
    const size_t width = in.rows() ? count(in.shape) / static_cast<size_t>(in.rows()) : 0;
    for (size_t r = 0; r < static_cast<size_t>(in.rows()); ++r) {
      to[r] = T{};
      for (size_t i = 0; i < width; ++i) to[r] = static_cast<T>(to[r] + from[r * width + i]);
    }
  });
  return out;
}

}  // namespace fake
