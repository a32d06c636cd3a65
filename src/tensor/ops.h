// SPDX-License-Identifier: Apache-2.0
// The few things hasten does to tensors: fill, cycle rows, slice, cast to float64.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

struct FillRange {
  double low = 0, high = 1;  // Uniform in [low, high]; integers include both ends.
};

// Seeded and the same on every machine. Floats: standard normal unless a range is given;
// integers: 0 and 1 unless a range is given (safe as an index); booleans: fair coin.
Tensor random_tensor(DType dtype, std::span<const int64_t> shape, uint64_t seed,
                     std::optional<FillRange> range = std::nullopt);

// A compact tensor whose `axis` has `size` entries, taken from `tensor` in order and,
// past the end, again from the start. A zero-size axis can only give zero entries.
Tensor cycled(const Tensor& tensor, size_t axis, int64_t size);
Tensor sliced(const Tensor& tensor, size_t axis, int64_t begin, int64_t end);  // Compact copy.
Result<Tensor> concatenated(std::span<const Tensor> parts, size_t axis);

// Values as float64 in row-major order; complex as modulus. For reports and tests.
std::vector<double> to_doubles(const Tensor& tensor);
std::string shape_text(std::span<const int64_t> shape);  // "[2,3]"
// What such a tensor would take: no product of sizes is too large to be said.
double bytes_of(DType dtype, std::span<const int64_t> shape);

float half_to_float(uint16_t bits);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_half(float value);      // To the nearest, ties to even; too large: infinity.
uint16_t float_to_bfloat16(float value);

}  // namespace hasten
