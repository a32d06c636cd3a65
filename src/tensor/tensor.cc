// SPDX-License-Identifier: Apache-2.0
#include <hasten/tensor.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "tensor/ops.h"
#include "tensor/strided.h"

namespace hasten {
namespace {

// What AVX-512 loads like best, and one cache line on every machine we know.
constexpr size_t kAlignment = 64;

// The head of the one heap block behind a tensor of our own; after it come shape,
// strides and, at the next multiple of kAlignment, the data.
struct Block {
  DLManagedTensorVersioned managed;
  std::shared_ptr<const void> owner;  // Of the data of a view; shared with other views.
};

constexpr size_t round_up(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

void destroy(DLManagedTensorVersioned* managed) {
  auto* block = static_cast<Block*>(managed->manager_ctx);
  block->~Block();
  ::operator delete (block, std::align_val_t{kAlignment});
}

// A block with room for `bytes` of data; shape copied, strides and data not yet written.
DLManagedTensorVersioned* make_block(DType dtype, std::span<const int64_t> shape, size_t bytes) {
  const size_t head = round_up(sizeof(Block) + 2 * shape.size() * sizeof(int64_t));
  if (bytes > SIZE_MAX - head) throw std::bad_alloc();
  void* memory = ::operator new (head + bytes, std::align_val_t{kAlignment});
  auto* block = new (memory) Block{};
  auto* numbers = reinterpret_cast<int64_t*>(block + 1);
  std::copy(shape.begin(), shape.end(), numbers);
  DLManagedTensorVersioned& m = block->managed;
  m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m.manager_ctx = block;
  m.deleter = destroy;
  m.dl_tensor.device = {kDLCPU, 0};
  m.dl_tensor.dtype = to_dlpack(dtype);
  m.dl_tensor.ndim = static_cast<int32_t>(shape.size());
  m.dl_tensor.shape = numbers;
  m.dl_tensor.strides = numbers + shape.size();
  // Not null for a tensor without elements either: engines refuse a null pointer.
  m.dl_tensor.data = static_cast<char*>(memory) + head;
  return &m;
}

void write_compact_strides(std::span<const int64_t> shape, int64_t* strides) {
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    // Unsigned: beside an axis without entries the others may be of any size.
    step = static_cast<int64_t>(static_cast<uint64_t>(step) *
                                static_cast<uint64_t>(std::max<int64_t>(shape[d], 1)));
  }
}

Shape compact_strides(std::span<const int64_t> shape) {
  Shape strides(shape.size());
  write_compact_strides(shape, strides.data());
  return strides;
}

template <class Word>
void copy_elements(const DLTensor& from, std::span<const int64_t> strides, void* to) {
  const auto* source =
      reinterpret_cast<const Word*>(static_cast<const char*>(from.data) + from.byte_offset);
  auto* target = static_cast<Word*>(to);
  const std::span<const int64_t> shape(from.shape, static_cast<size_t>(from.ndim));
  for_each_run<1>(shape, {strides}, [&](const auto& offsets, int64_t count, const auto& steps) {
    const Word* run = source + offsets[0];
    if (steps[0] == 1) {
      std::memcpy(target, run, static_cast<size_t>(count) * sizeof(Word));
    } else {
      for (int64_t i = 0; i < count; ++i) target[i] = run[i * steps[0]];
    }
    target += count;
  });
}

// Everything about a foreign tensor that could lead us astray.
Status check_foreign(const DLTensor& t) {
  if (t.device.device_type != kDLCPU) {
    return Error{Code::kUnsupported,
                 format("a tensor on DLPack device type {}, not in host memory",
                        static_cast<int>(t.device.device_type)),
                 "copy it to the CPU first"};
  }
  if (!dtype_from_dlpack(t.dtype)) {
    return Error{Code::kUnsupported,
                 format("a tensor of DLPack dtype code {}, {} bits, {} lanes, which hasten has no "
                        "name for",
                        t.dtype.code, t.dtype.bits, t.dtype.lanes)};
  }
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape)) {
    return Error{Code::kInvalidArgument,
                 format("a DLPack tensor of rank {} without a shape", t.ndim)};
  }
  const std::span<const int64_t> shape(t.shape, static_cast<size_t>(t.ndim));
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; })) {
    return Error{Code::kInvalidArgument,
                 format("a DLPack tensor with the negative shape {}", shape_text(shape))};
  }
  if (!t.data && element_count(shape) > 0) {
    return Error{Code::kInvalidArgument,
                 format("a DLPack tensor of shape {} without data", shape_text(shape))};
  }
  return {};
}

const DLTensor& checked(const DLManagedTensorVersioned* managed) {
  if (!managed) throw std::logic_error("Tensor: used before anything was put in it");
  return managed->dl_tensor;
}

}  // namespace

size_t element_count(std::span<const int64_t> shape) {
  size_t count = 1;
  bool too_many = false;
  for (const int64_t n : shape) {
    if (n < 0) throw std::logic_error("element_count: negative shape " + shape_text(shape));
    if (n == 0) return 0;
    too_many |= __builtin_mul_overflow(count, static_cast<size_t>(n), &count);
  }
  return too_many ? SIZE_MAX : count;
}

Tensor Tensor::empty(DType dtype, std::span<const int64_t> shape) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(element_count(shape), hasten::size_bytes(dtype), &bytes)) {
    throw std::bad_alloc();
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.managed_.reset(make_block(dtype, shape, bytes));
  write_compact_strides(shape, tensor.managed_->dl_tensor.strides);
  return tensor;
}

Tensor Tensor::zeros(DType dtype, std::span<const int64_t> shape) {
  Tensor tensor = empty(dtype, shape);
  std::memset(tensor.data(), 0, tensor.nbytes());
  return tensor;
}

Result<Tensor> Tensor::copy_of(const DLTensor& view) {
  HASTEN_TRY_STATUS(check_foreign(view));
  const std::span<const int64_t> shape(view.shape, static_cast<size_t>(view.ndim));
  Tensor tensor = empty(*dtype_from_dlpack(view.dtype), shape);
  if (tensor.size() == 0) return tensor;
  const Shape strides =
      view.strides ? Shape(view.strides, view.strides + view.ndim) : compact_strides(shape);
  switch (hasten::size_bytes(tensor.dtype())) {
    case 1:
      copy_elements<uint8_t>(view, strides, tensor.data());
      break;
    case 2:
      copy_elements<uint16_t>(view, strides, tensor.data());
      break;
    case 4:
      copy_elements<uint32_t>(view, strides, tensor.data());
      break;
    case 8:
      copy_elements<uint64_t>(view, strides, tensor.data());
      break;
    default:
      copy_elements<std::complex<double>>(view, strides, tensor.data());
      break;
  }
  return tensor;
}

Result<Tensor> Tensor::adopt(DLManagedTensorVersioned* managed) {
  if (!managed) return Error{Code::kInvalidArgument, "a DLPack tensor that is a null pointer"};
  std::unique_ptr<DLManagedTensorVersioned, DLManagedDeleter> held(managed);
  // Of another major only version, manager_ctx, deleter and flags stand where we look.
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    return Error{Code::kUnsupported, format("a tensor of DLPack version {}.{}; hasten speaks {}.{}",
                                            managed->version.major, managed->version.minor,
                                            DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)};
  }
  DLTensor& t = managed->dl_tensor;
  HASTEN_TRY_STATUS(check_foreign(t));
  const DType dtype = *dtype_from_dlpack(t.dtype);
  if (t.ndim > 0 && !t.strides) {
    // Allowed before DLPack 1.2. A view writes them out.
    Shape shape(t.shape, t.shape + t.ndim);
    Shape strides = compact_strides(shape);
    void* data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
    return view_of(dtype, data, std::move(shape), std::move(strides), std::move(held));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.managed_ = std::move(held);
  return tensor;
}

Tensor Tensor::view_of(DType dtype, void* data, Shape shape, Shape strides,
                       std::shared_ptr<const void> owner) {
  if (strides.size() != shape.size()) {
    throw std::logic_error(
        format("Tensor::view_of: {} strides for rank {}", strides.size(), shape.size()));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.managed_.reset(make_block(dtype, shape, 0));
  DLTensor& t = tensor.managed_->dl_tensor;
  std::copy(strides.begin(), strides.end(), t.strides);
  if (data) t.data = data;
  static_cast<Block*>(tensor.managed_->manager_ctx)->owner = std::move(owner);
  return tensor;
}

template <class T>
Tensor Tensor::from(std::span<const T> values, std::span<const int64_t> shape) {
  if (values.size() != element_count(shape)) {
    throw std::logic_error(
        format("Tensor::from: {} values for shape {}", values.size(), shape_text(shape)));
  }
  Tensor tensor = empty(dtype_of<T>(), shape);
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size_bytes());
  return tensor;
}

std::span<const int64_t> Tensor::shape() const {
  const DLTensor& t = checked(managed_.get());
  return {t.shape, static_cast<size_t>(t.ndim)};
}

std::span<const int64_t> Tensor::strides() const {
  const DLTensor& t = checked(managed_.get());
  return {t.strides, static_cast<size_t>(t.ndim)};
}

bool Tensor::is_compact() const {
  const std::span<const int64_t> sizes = shape(), steps = strides();
  if (size() == 0) return true;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && steps[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

void* Tensor::data() { return const_cast<void*>(std::as_const(*this).data()); }

const void* Tensor::data() const {
  const DLTensor& t = checked(managed_.get());
  return t.data ? static_cast<const char*>(t.data) + t.byte_offset : nullptr;
}

template <class T>
std::span<const T> Tensor::values() const {
  checked(managed_.get());
  if (dtype_ != dtype_of<T>() || !is_compact()) {
    throw std::logic_error(format("Tensor::values: asked for {} of {}{}", to_string(dtype_of<T>()),
                                  is_compact() ? "" : "strided ", to_string(dtype_)));
  }
  return {static_cast<const T*>(data()), size()};
}

Tensor Tensor::clone() const { return copy_of(checked(managed_.get())).value(); }

DLManagedTensorVersioned* Tensor::release() { return managed_.release(); }

#define HASTEN_TENSOR_OF(T)                                                                 \
  template HASTEN_API Tensor Tensor::from<T>(std::span<const T>, std::span<const int64_t>); \
  template HASTEN_API std::span<const T> Tensor::values<T>() const;
HASTEN_TENSOR_OF(bool)
HASTEN_TENSOR_OF(signed char)
HASTEN_TENSOR_OF(unsigned char)
HASTEN_TENSOR_OF(short)
HASTEN_TENSOR_OF(unsigned short)
HASTEN_TENSOR_OF(int)
HASTEN_TENSOR_OF(unsigned int)
HASTEN_TENSOR_OF(long)
HASTEN_TENSOR_OF(unsigned long)
HASTEN_TENSOR_OF(long long)
HASTEN_TENSOR_OF(unsigned long long)
HASTEN_TENSOR_OF(float)
HASTEN_TENSOR_OF(double)
HASTEN_TENSOR_OF(std::complex<float>)
HASTEN_TENSOR_OF(std::complex<double>)
#undef HASTEN_TENSOR_OF

}  // namespace hasten
