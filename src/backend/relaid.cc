// SPDX-License-Identifier: Apache-2.0
#include "backend/relaid.h"

#include <algorithm>
#include <cstring>

#include "backend/wire.h"

namespace hasten {
namespace {

// A multiple of every element's size; nobody may rely on more alignment than that.
constexpr uint64_t kOffset = 16;

void copy(const DLTensor& from, const DLTensor& to, int axis, const std::byte* source,
          std::byte* target, size_t item) {
  if (axis == from.ndim) {
    std::memcpy(target, source, item);
    return;
  }
  const auto step = static_cast<int64_t>(item);
  for (int64_t i = 0; i < from.shape[axis]; ++i) {
    copy(from, to, axis + 1, source + i * from.strides[axis] * step,
         target + i * to.strides[axis] * step, item);
  }
}

}  // namespace

Relaid::Relaid(const DLTensor& from, Layout layout)
    : shape_(from.shape, from.shape + from.ndim), view_(from) {
  if (layout == Layout::kReversedAxes) {
    std::vector<int64_t> reversed(shape_.rbegin(), shape_.rend());
    strides_ = compact_strides(reversed);
    std::reverse(strides_.begin(), strides_.end());
  } else {
    strides_ = compact_strides(shape_);
    for (int64_t& stride : strides_) stride *= 2;
    view_.byte_offset = kOffset;
  }
  if (layout == Layout::kReversedAxes) view_.byte_offset = 0;
  const size_t item = from.dtype.bits * from.dtype.lanes / 8u;
  storage_.resize(view_.byte_offset + 2 * item * std::max<size_t>(element_count(shape_), 1));
  view_.shape = shape_.data();
  view_.strides = strides_.data();
  view_.data = storage_.data();
  copy(from, view_, 0, static_cast<const std::byte*>(from.data) + from.byte_offset,
       storage_.data() + view_.byte_offset, item);
}

Relaid Relaid::emptied(const DLTensor& from) {
  Relaid relaid;
  relaid.view_ = from;
  relaid.shape_.assign(from.shape, from.shape + from.ndim);
  if (!relaid.shape_.empty()) relaid.shape_[0] = 0;
  relaid.strides_ = compact_strides(relaid.shape_);
  relaid.view_.shape = relaid.shape_.data();
  relaid.view_.strides = relaid.strides_.data();
  return relaid;
}

}  // namespace hasten
