// SPDX-License-Identifier: Apache-2.0
// The inputs of one call inside a worker: pristine bytes, and a working copy of them
// that the model is called with.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "backend/shared_memory.h"
#include "base/json.h"

#include <cstddef>
#include <span>
#include <vector>

namespace hasten {

// Do they share memory?
bool overlap(const Tensor& a, const Tensor& b);

class InputSlot {
 public:
  // Of tensors in shared memory, as protocol.md describes them. Strides are kept.
  static Result<InputSlot> read(const SharedMemory& memory, const Json& tensors);

  std::span<const DLTensor> views() const { return views_; }  // Of the working copy.
  void restore();                       // The working copy from the pristine one.
  std::vector<size_t> written() const;  // Inputs whose bytes are not the pristine ones.
  // Does the tensor share memory with the working copy of this input?
  bool overlaps(size_t input, const Tensor& tensor) const;

 private:
  struct Bytes {
    Tensor pristine, working;  // uint8; the stored extent of one input.
  };
  std::vector<Bytes> bytes_;
  std::vector<Tensor> tensors_;  // Views into `working`.
  std::vector<DLTensor> views_;
};

}  // namespace hasten
