// SPDX-License-Identifier: Apache-2.0
// How far one tensor is from another, element by element.
#pragma once

#include <hasten/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hasten {

// |actual - expected| <= absolute + relative * |expected|, as numpy.allclose has it.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

struct Difference {
  // Why the tensors cannot be compared by value: "dtype float32, not float64",
  // "shape [2,3], not [2,4]". Empty: they can.
  std::string mismatch;
  bool within = true;          // Every element within the tolerance, NaN and Inf in place.
  Shape index;                 // Of the worst element (largest excess over its limit).
  double absolute = 0;         // There: |actual - expected|; infinity where only one is finite.
  double relative = 0;         // There: absolute / |expected|.
  double limit = 0;            // There: what was allowed.
  double actual = 0, expected = 0;
  double largest_absolute = 0; // Over all elements, wherever.
  size_t outside = 0;          // Elements beyond the limit.
};

// Integers and booleans must be equal whatever the tolerance. NaN equals NaN,
// +Inf equals +Inf. Complex numbers are compared by modulus. Strides are honoured.
// 64-bit integers are compared exactly, never through double.
Difference compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

bool identical(const Tensor& a, const Tensor& b);  // dtype, shape and bits (NaN payloads too).

}  // namespace hasten
