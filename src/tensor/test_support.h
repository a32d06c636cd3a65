// SPDX-License-Identifier: Apache-2.0
// Small helpers of this folder's tests.
#pragma once

#include "hasten/tensor.h"

namespace hasten::testing {

inline Shape shape_of(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

}  // namespace hasten::testing
