// SPDX-License-Identifier: Apache-2.0
// A caller's tensors as the views that backends are promised.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hasten {

// Calls with up to this many inputs, and axes without strides, allocate nothing here.
constexpr size_t kFewInputs = 16;
constexpr size_t kFewAxes = 64;

// The same views with strides always set and never negative: what runs backwards is copied.
// Borrows what it is given, and hands it on as it is when nothing lacks.
class StridedViews {
 public:
  StridedViews() = default;
  StridedViews(const StridedViews&) = delete;
  StridedViews& operator=(const StridedViews&) = delete;
  // `given`: checked already, so that their shapes can be relied on.
  Status set(std::span<const DLTensor> given);
  std::span<const DLTensor> get() const { return views_; }

 private:
  Status fill();

  std::span<const DLTensor> views_;
  std::array<DLTensor, kFewInputs> few_views_;
  std::array<int64_t, kFewAxes> few_strides_;
  std::vector<DLTensor> many_views_;
  std::vector<int64_t> many_strides_;
  std::vector<Tensor> copies_;
};

}  // namespace hasten
