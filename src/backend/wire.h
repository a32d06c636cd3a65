// SPDX-License-Identifier: Apache-2.0
// What stands on the wire between host and worker; protocol.md says what it means.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

// A million call times fit; a broken worker cannot make us allocate more.
constexpr size_t kMaxMessageBytes = 64u << 20;
constexpr size_t kMaxRank = 64;

// Length and text, as sent.
std::string to_frame(const Json& message);
// A whole frame at the start of `received`: the message, and how many bytes it took.
// None: more bytes are needed. Fails on a frame that is too large or no JSON object.
struct Frame {
  Json message;
  size_t size = 0;
};
Result<std::optional<Frame>> first_frame(std::string_view received);

Json to_json(const Error& error);  // {"code", "message", "hint"}
Error error_from_json(const Json& json);

// Where a tensor stands in shared memory.
struct TensorLayout {
  DType dtype = DType::kFloat32;
  Shape shape, strides;
  uint64_t offset = 0;  // Bytes into the memory, of the first element.
  uint64_t nbytes = 0;  // From there to behind the last element.

  bool is_compact() const;
  Json to_json() const;
  // Fails unless it lies wholly inside a memory of `limit` bytes. Strides are never negative.
  static Result<TensorLayout> from_json(const Json& json, uint64_t limit);
};

// Bytes from the first to behind the last element; none on overflow or a negative size or stride.
std::optional<uint64_t> extent_bytes(DType dtype, std::span<const int64_t> shape,
                                     std::span<const int64_t> strides);
Shape compact_strides(std::span<const int64_t> shape);
// The tensors one behind the other, each at a multiple of 64, and the bytes they take. A view
// with a negative stride has no layout: it is to be copied first.
struct Placement {
  std::vector<TensorLayout> layouts;
  uint64_t size = 0;
};
Placement place(std::span<const Tensor> tensors);
bool has_negative_stride(const Tensor& tensor);

}  // namespace hasten
