// SPDX-License-Identifier: Apache-2.0
// The same values in other places of memory, to see whether a backend looks at strides.
#pragma once

#include <hasten/tensor.h>

#include <cstddef>
#include <vector>

namespace hasten {

enum class Layout { kReversedAxes, kGapsAndOffset };

// Owns a copy of `from` in that layout; view() is valid as long as it lives.
class Relaid {
 public:
  Relaid(const DLTensor& from, Layout layout);
  // A tensor of no elements: the first axis has size 0.
  static Relaid emptied(const DLTensor& from);
  const DLTensor& view() const { return view_; }

 private:
  Relaid() = default;
  std::vector<int64_t> shape_, strides_;
  std::vector<std::byte> storage_;
  DLTensor view_{};
};

}  // namespace hasten
