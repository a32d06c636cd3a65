// SPDX-License-Identifier: Apache-2.0
// A tensor in host memory: DLPack inside, so that every framework understands it.
#pragma once

#include <dlpack/dlpack.h>
#include <hasten/export.h>
#include <hasten/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hasten {

enum class DType : uint8_t {
  kBool, kUInt8, kInt8, kUInt16, kInt16, kUInt32, kInt32, kUInt64, kInt64,
  kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128,
};

HASTEN_API std::string_view to_string(DType dtype);                      // "float32", as NumPy names it.
HASTEN_API std::optional<DType> dtype_from_string(std::string_view name);
HASTEN_API size_t size_bytes(DType dtype);
HASTEN_API DLDataType to_dlpack(DType dtype);
HASTEN_API std::optional<DType> dtype_from_dlpack(DLDataType type);      // None: one that hasten has no name for.
template <class T>
DType dtype_of();                                             // The arithmetic types of C++ and bool.

using Shape = std::vector<int64_t>;
HASTEN_API size_t element_count(std::span<const int64_t> shape);

struct DLManagedDeleter {
  void operator()(DLManagedTensorVersioned* t) const {
    if (t->deleter) t->deleter(t);
  }
};

// Owns one tensor. Moves, does not copy; clone() copies. Default-constructed: none.
class HASTEN_API Tensor {
 public:
  Tensor() = default;

  // Compact (row-major), 64-byte aligned, contents undefined. Zero-size and
  // zero-rank shapes are tensors like any other.
  static Tensor empty(DType dtype, std::span<const int64_t> shape);
  static Tensor zeros(DType dtype, std::span<const int64_t> shape);
  // A compact copy of any strided view; NULL strides mean compact.
  static Result<Tensor> copy_of(const DLTensor& view);
  // Takes over what a framework made. Fails, after calling the deleter, on a
  // foreign DLPack major, a device other than the CPU, or an unknown dtype.
  static Result<Tensor> adopt(DLManagedTensorVersioned* managed);
  // A view that keeps `owner` alive as long as the tensor lives.
  static Tensor view_of(DType dtype, void* data, Shape shape, Shape strides,
                        std::shared_ptr<const void> owner);
  template <class T>
  static Tensor from(std::span<const T> values, std::span<const int64_t> shape);

  explicit operator bool() const { return managed_ != nullptr; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const;
  std::span<const int64_t> strides() const;  // In elements.
  size_t size() const { return element_count(shape()); }
  size_t nbytes() const { return size() * size_bytes(dtype_); }
  bool is_compact() const;
  void* data();              // First element; byte_offset is already added.
  const void* data() const;
  template <class T>
  std::span<const T> values() const;  // Compact tensors of that type only; a bug otherwise.
  const DLTensor& view() const { return managed_->dl_tensor; }
  Tensor clone() const;      // Compact copy.
  DLManagedTensorVersioned* release();  // Gives up ownership.

 private:
  std::unique_ptr<DLManagedTensorVersioned, DLManagedDeleter> managed_;
  DType dtype_ = DType::kFloat32;
};

}  // namespace hasten
