// SPDX-License-Identifier: Apache-2.0
// Tensors and failures for plugins that run in libtorch. Header-only and no part of the ABI.
//
// torch's headers stay inside the plugins, so this one includes none of them. Include before it:
//   <ATen/Parallel.h> <ATen/ops/empty_strided.h> <ATen/ops/from_blob.h>
#pragma once

#include <hasten/plugin_tensor.hpp>

#include <array>
#include <cctype>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hasten {

// The sentence inside torch's text: TorchScript puts it behind a traceback, the others put
// a backtrace behind it.
inline std::string torch_sentence(std::string_view text) {
  std::string_view found;
  const bool traceback = text.find("Traceback of TorchScript") != text.npos;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) {
      line.remove_prefix(1);
    }
    if (line.empty()) continue;
    if (found.empty() || (traceback && line.find("Error: ") < 60)) found = line;
    if (!traceback) break;
  }
  return std::string(found);
}

[[noreturn]] inline void throw_torch_failure(hasten_code code, const std::string& what,
                                             std::string_view text) {
  // torch reports a refused host allocation as a plain error.
  const bool memory = text.find("can't allocate memory") != text.npos;
  throw PluginError(memory ? HASTEN_OUT_OF_MEMORY : code, what + ": " + torch_sentence(text));
}

// Runs torch code; what torch throws becomes one sentence behind `what`.
template <class F>
auto with_torch(hasten_code code, const std::string& what, F&& body) {
  try {
    return body();
  } catch (const PluginError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::Error& e) {
    throw_torch_failure(code, what, e.what_without_backtrace());
  } catch (const std::exception& e) {
    throw_torch_failure(code, what, e.what());
  }
}

struct TorchType {
  at::ScalarType scalar;
  DLDataType dlpack;
  std::string_view name;
};
inline constexpr std::array<TorchType, 15> kTorchTypes = {{
    {at::kBool, {kDLBool, 8, 1}, "bool"},
    {at::kByte, {kDLUInt, 8, 1}, "uint8"},
    {at::kChar, {kDLInt, 8, 1}, "int8"},
    {at::kUInt16, {kDLUInt, 16, 1}, "uint16"},
    {at::kShort, {kDLInt, 16, 1}, "int16"},
    {at::kUInt32, {kDLUInt, 32, 1}, "uint32"},
    {at::kInt, {kDLInt, 32, 1}, "int32"},
    {at::kUInt64, {kDLUInt, 64, 1}, "uint64"},
    {at::kLong, {kDLInt, 64, 1}, "int64"},
    {at::kHalf, {kDLFloat, 16, 1}, "float16"},
    {at::kBFloat16, {kDLBfloat, 16, 1}, "bfloat16"},
    {at::kFloat, {kDLFloat, 32, 1}, "float32"},
    {at::kDouble, {kDLFloat, 64, 1}, "float64"},
    {at::kComplexFloat, {kDLComplex, 64, 1}, "complex64"},
    {at::kComplexDouble, {kDLComplex, 128, 1}, "complex128"},
}};

inline const TorchType* torch_type(DLDataType type) {
  for (const TorchType& t : kTorchTypes) {
    if (t.dlpack.code == type.code && t.dlpack.bits == type.bits && type.lanes == 1) return &t;
  }
  return nullptr;
}
inline const TorchType* torch_type(at::ScalarType type) {
  for (const TorchType& t : kTorchTypes) {
    if (t.scalar == type) return &t;
  }
  return nullptr;
}
inline const TorchType* torch_type(std::string_view name) {
  for (const TorchType& t : kTorchTypes) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

// A tensor over the caller's memory, in the caller's strides.
inline at::Tensor borrow(const DLTensor& t) {
  const TorchType* type = torch_type(t.dtype);
  if (!type) {
    throw PluginError(HASTEN_UNSUPPORTED, "torch has no dtype " + dtype_text(t.dtype));
  }
  const at::IntArrayRef shape(t.shape, static_cast<size_t>(t.ndim));
  const at::TensorOptions options = at::TensorOptions().dtype(type->scalar);
  if (count_of(shape_of(t)) == 0) return at::empty(shape, options);
  if (!t.strides) return at::from_blob(data_of(t), shape, options);
  return at::from_blob(data_of(t), shape, {t.strides, static_cast<size_t>(t.ndim)}, options);
}

// Gives the tensor away, in the strides it has; it lives until the caller's deleter.
inline OwnedTensor hand_over(at::Tensor tensor) {
  struct Holder {
    DLManagedTensorVersioned managed{};
    at::Tensor tensor;
  };
  const TorchType* type = torch_type(tensor.scalar_type());
  if (!type || tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    throw PluginError(HASTEN_UNSUPPORTED, "an output is a " + tensor.toString() +
                                              ", which is no dense tensor in host memory");
  }
  if (tensor.is_conj() || tensor.is_neg()) tensor = tensor.resolve_conj().resolve_neg();
  auto holder = std::make_unique<Holder>();
  holder->tensor = std::move(tensor);
  const at::Tensor& kept = holder->tensor;
  DLManagedTensorVersioned& managed = holder->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = holder.get();
  managed.deleter = [](DLManagedTensorVersioned* self) {
    delete static_cast<Holder*>(self->manager_ctx);
  };
  managed.dl_tensor = {.data = const_cast<void*>(kept.const_data_ptr()),
                       .device = {kDLCPU, 0},
                       .ndim = static_cast<int32_t>(kept.dim()),
                       .dtype = type->dlpack,
                       .shape = const_cast<int64_t*>(kept.sizes().data()),
                       .strides = const_cast<int64_t*>(kept.strides().data()),
                       .byte_offset = 0};
  return OwnedTensor(&holder.release()->managed);
}

// Does the tensor share memory with one of these views?
inline bool lies_in(const at::Tensor& tensor, std::span<const DLTensor> views) {
  if (tensor.numel() == 0) return false;
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  for (const DLTensor& t : views) {
    size_t extent = element_bytes(t.dtype);
    for (int32_t i = 0; i < t.ndim; ++i) {
      const int64_t stride = t.strides ? t.strides[i] : 0;
      extent += static_cast<size_t>((t.shape[i] - 1) * stride) * element_bytes(t.dtype);
    }
    if (!t.strides) extent = bytes_of(t);
    const auto* begin = static_cast<const std::byte*>(data_of(t));
    if (count_of(shape_of(t)) > 0 && data >= begin && data < begin + extent) return true;
  }
  return false;
}

// The number of threads is a setting of the process and, with OpenMP, of the calling thread.
inline void use_threads(int threads) {
  if (threads > 0 && at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace hasten
