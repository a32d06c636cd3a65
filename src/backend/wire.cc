// SPDX-License-Identifier: Apache-2.0
#include "backend/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.h"

namespace hasten {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr uint64_t kAlignment = 64;  // DLPack's producers' usual; no vector unit needs more.

uint64_t aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

Error malformed(std::string_view what) {
  return Error{Code::kInternal, format("malformed tensor: {}", what)};
}

Result<Shape> sizes_from(const Json& json, std::string_view what) {
  if (!json.is_array() || json.items().size() > kMaxRank) return malformed(what);
  Shape sizes;
  for (const Json& item : json.items()) {
    if (!item.is_int() || item.as_int() < 0) return malformed(what);
    sizes.push_back(item.as_int());
  }
  return sizes;
}

Json sizes_to(const Shape& sizes) {
  Json json = Json::array();
  for (const int64_t size : sizes) json.push(size);
  return json;
}

}  // namespace

std::string to_frame(const Json& message) {
  const std::string text = message.dump();
  const auto size = static_cast<uint32_t>(text.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame += text;
}

Result<std::optional<Frame>> first_frame(std::string_view received) {
  uint32_t size = 0;
  if (received.size() < sizeof size) return std::optional<Frame>();
  std::memcpy(&size, received.data(), sizeof size);
  if (size > kMaxMessageBytes) {
    return Error{Code::kInternal, format("a message of {} bytes", size)};
  }
  if (received.size() < sizeof size + size) return std::optional<Frame>();
  HASTEN_TRY(Json message, Json::parse(received.substr(sizeof size, size)));
  if (!message.is_object()) return Error{Code::kInternal, "a message that is no object"};
  return std::optional(Frame{std::move(message), sizeof size + size});
}

Json to_json(const Error& error) {
  return Json::object(
      {{"code", to_string(error.code)}, {"message", error.message}, {"hint", error.hint}});
}

Error error_from_json(const Json& json) {
  Error error{code_from_string(json["code"].as_string()), json["message"].as_string(),
              json["hint"].as_string()};
  if (error.message.empty()) error.message = "failed without a message";
  return error;
}

bool TensorLayout::is_compact() const {
  const Shape compact = compact_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != compact[i]) return false;
  }
  return true;
}

Json TensorLayout::to_json() const {
  return Json::object({{"dtype", to_string(dtype)},
                       {"shape", sizes_to(shape)},
                       {"strides", sizes_to(strides)},
                       {"offset", offset},
                       {"nbytes", nbytes}});
}

Result<TensorLayout> TensorLayout::from_json(const Json& json, uint64_t limit) {
  TensorLayout layout;
  const auto dtype = dtype_from_string(json["dtype"].as_string());
  if (!dtype) return malformed(format("dtype '{}'", json["dtype"].as_string()));
  layout.dtype = *dtype;
  HASTEN_TRY(layout.shape, sizes_from(json["shape"], "shape"));
  if (json.contains("strides")) {
    HASTEN_TRY(layout.strides, sizes_from(json["strides"], "strides"));
  } else {
    layout.strides = compact_strides(layout.shape);
  }
  if (layout.strides.size() != layout.shape.size()) return malformed("strides");
  const auto extent = extent_bytes(layout.dtype, layout.shape, layout.strides);
  if (!extent) return malformed("it is too large");
  const int64_t offset = json["offset"].as_int(-1), nbytes = json["nbytes"].as_int(-1);
  if (offset < 0 || nbytes < 0) return malformed("offset");
  layout.offset = static_cast<uint64_t>(offset);
  layout.nbytes = static_cast<uint64_t>(nbytes);
  if (*extent > layout.nbytes || layout.offset > limit || layout.nbytes > limit - layout.offset) {
    return malformed(format("{} bytes at {} of {}", layout.nbytes, offset, limit));
  }
  return layout;
}

std::optional<uint64_t> extent_bytes(DType dtype, std::span<const int64_t> shape,
                                     std::span<const int64_t> strides) {
  // The number of elements must be countable too, or a stride of 0 hides it.
  int64_t last = 0, elements = 1, reach = 0, bytes = 0;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0) return std::nullopt;
    if (shape[i] == 0) empty = true;
  }
  if (empty) return 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (__builtin_mul_overflow(elements, shape[i], &elements) ||
        __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  const auto item = static_cast<int64_t>(size_bytes(dtype));
  if (__builtin_mul_overflow(elements, item, &elements) || __builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, item, &bytes)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

Shape compact_strides(std::span<const int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    // Overflow is the business of extent_bytes(); here it must only not be undefined.
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) *
                                          static_cast<uint64_t>(std::max<int64_t>(shape[i], 1)));
  }
  return strides;
}

Placement place(std::span<const Tensor> tensors) {
  Placement placement;
  for (const Tensor& tensor : tensors) {
    TensorLayout layout;
    layout.dtype = tensor.dtype();
    layout.shape.assign(tensor.shape().begin(), tensor.shape().end());
    layout.strides.assign(tensor.strides().begin(), tensor.strides().end());
    const auto extent = extent_bytes(layout.dtype, layout.shape, layout.strides);
    if (!extent) throw std::logic_error("place: a tensor without a layout");
    layout.nbytes = *extent;
    layout.offset = placement.size;
    placement.size = aligned(placement.size + layout.nbytes);
    placement.layouts.push_back(std::move(layout));
  }
  return placement;
}

bool has_negative_stride(const Tensor& tensor) {
  const auto strides = tensor.strides();
  return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride < 0; });
}

}  // namespace hasten
