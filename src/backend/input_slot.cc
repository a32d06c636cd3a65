// SPDX-License-Identifier: Apache-2.0
#include "backend/input_slot.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hasten {
namespace {

Tensor bytes_of(uint64_t size) {
  const std::array<int64_t, 1> shape = {static_cast<int64_t>(size)};
  return Tensor::empty(DType::kUInt8, shape);
}

struct Range {
  const std::byte* begin;
  const std::byte* end;
};

Range range_of(const Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.data());
  if (tensor.size() == 0) return {data, data};
  const auto item = static_cast<int64_t>(size_bytes(tensor.dtype()));
  int64_t low = 0, high = item;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    const int64_t reach = (tensor.shape()[i] - 1) * tensor.strides()[i] * item;
    (reach < 0 ? low : high) += reach;
  }
  return {data + low, data + high};
}

}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  const Range x = range_of(a), y = range_of(b);
  return x.begin != x.end && y.begin != y.end && x.begin < y.end && y.begin < x.end;
}

Result<InputSlot> InputSlot::read(const SharedMemory& memory, const Json& tensors) {
  HASTEN_TRY(const uint64_t limit, memory.size());
  InputSlot slot;
  for (const Json& item : tensors.items()) {
    HASTEN_TRY(TensorLayout layout, TensorLayout::from_json(item, limit));
    Bytes bytes{bytes_of(layout.nbytes), bytes_of(layout.nbytes)};
    HASTEN_TRY_STATUS(memory.read_at(layout.offset, bytes.pristine.data(), layout.nbytes));
    slot.tensors_.push_back(
        Tensor::view_of(layout.dtype, bytes.working.data(), layout.shape, layout.strides, nullptr));
    slot.views_.push_back(slot.tensors_.back().view());
    slot.bytes_.push_back(std::move(bytes));
  }
  slot.restore();
  return slot;
}

void InputSlot::restore() {
  for (Bytes& b : bytes_) {
    if (b.pristine.nbytes() > 0) {
      std::memcpy(b.working.data(), b.pristine.data(), b.pristine.nbytes());
    }
  }
}

std::vector<size_t> InputSlot::written() const {
  std::vector<size_t> changed;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const Bytes& b = bytes_[i];
    if (b.pristine.nbytes() > 0 &&
        std::memcmp(b.working.data(), b.pristine.data(), b.pristine.nbytes()) != 0) {
      changed.push_back(i);
    }
  }
  return changed;
}

bool InputSlot::overlaps(size_t input, const Tensor& tensor) const {
  return overlap(bytes_[input].working, tensor);
}

}  // namespace hasten
