// SPDX-License-Identifier: Apache-2.0
#include "tensor/difference.h"

#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

namespace hasten {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
Tensor vector_of(std::vector<T> values) {
  return Tensor::from(std::span<const T>(values), Shape{static_cast<int64_t>(values.size())});
}

// Of 16-bit floats: the bits.
Tensor bits_of(DType dtype, std::vector<uint16_t> bits) {
  Tensor tensor = Tensor::empty(dtype, Shape{static_cast<int64_t>(bits.size())});
  std::copy(bits.begin(), bits.end(), static_cast<uint16_t*>(tensor.data()));
  return tensor;
}

TEST_CASE("compare: the worst element is the one farthest beyond its own limit") {
  // Limits 0.1 + 0.01 |e| = 0.11, 1.1, 10.1; distances 0.5, 1, 9.
  const Difference d =
      compare(vector_of<double>({1.5, 101, 1009}), vector_of<double>({1, 100, 1000}), {0.1, 0.01});
  CHECK(d.mismatch.empty());
  CHECK_FALSE(d.within);
  CHECK(d.outside == 1);
  CHECK(d.index == Shape{0});
  CHECK(d.absolute == 0.5);
  CHECK(d.relative == 0.5);
  CHECK(d.limit == doctest::Approx(0.11));
  CHECK(d.actual == 1.5);
  CHECK(d.expected == 1);
  CHECK(d.largest_absolute == 9);
}

TEST_CASE("compare: within the tolerance the worst element is still told") {
  const Difference d =
      compare(vector_of<float>({1, 2.5f, 3}), vector_of<float>({1, 2, 3.25f}), {0.5, 0});
  CHECK(d.within);
  CHECK(d.outside == 0);
  CHECK(d.index == Shape{1});
  CHECK(d.absolute == 0.5);
}

TEST_CASE("compare: of equally bad elements the first is named") {
  const Difference d = compare(vector_of<float>({0, 1, 1}), vector_of<float>({0, 0, 0}), {});
  CHECK(d.index == Shape{1});
  CHECK(d.outside == 2);
}

TEST_CASE("compare: an expected zero makes the relative difference infinite") {
  const Difference d = compare(vector_of<float>({0.5f}), vector_of<float>({0}), {1, 1});
  CHECK(d.within);
  CHECK(d.relative == kInf);
}

TEST_CASE("compare: dtype and shape come before values") {
  const Tensor f32 = Tensor::zeros(DType::kFloat32, Shape{2, 3});
  CHECK(compare(f32, Tensor::zeros(DType::kFloat64, Shape{2, 3}), {1, 1}).mismatch ==
        "dtype float32, not float64");
  const Difference d = compare(f32, Tensor::zeros(DType::kFloat32, Shape{2, 4}), {1, 1});
  CHECK(d.mismatch == "shape [2,3], not [2,4]");
  CHECK_FALSE(d.within);
  CHECK(compare(f32, Tensor::zeros(DType::kFloat32, Shape{}), {}).mismatch ==
        "shape [2,3], not []");
}

TEST_CASE("compare: NaN equals NaN, an infinity equals itself, neither equals a number") {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor expected = vector_of<float>({kNaN, inf, -inf, 1});
  CHECK(compare(vector_of<float>({kNaN, inf, -inf, 1}), expected, {}).within);
  const std::vector<std::vector<float>> wrong{{0, inf, -inf, 1},     {kNaN, 3e38f, -inf, 1},
                                              {kNaN, inf, inf, 1},   {kNaN, inf, -inf, kNaN},
                                              {kNaN, kNaN, -inf, 1}, {kNaN, inf, -inf, inf}};
  const std::vector<int64_t> where{0, 1, 2, 3, 1, 3};
  for (size_t i = 0; i < wrong.size(); ++i) {
    CAPTURE(i);
    const Difference d = compare(vector_of<float>(wrong[i]), expected, {1e30, 1e30});
    CHECK_FALSE(d.within);
    CHECK(d.outside == 1);
    CHECK(d.index == Shape{where[i]});
    CHECK(d.absolute == kInf);
    CHECK(d.relative == kInf);
    CHECK(std::isfinite(d.limit));
  }
}

TEST_CASE("compare: integers must be equal whatever the tolerance") {
  const Difference d = compare(vector_of<int>({1, 2, 300}), vector_of<int>({1, 4, 301}), {10, 10});
  CHECK_FALSE(d.within);
  CHECK(d.outside == 2);
  CHECK(d.index == Shape{1});
  CHECK(d.absolute == 2);
  CHECK(d.relative == 0.5);
  CHECK(d.limit == 0);
}

TEST_CASE("compare: 64-bit integers that are the same double are still told apart") {
  const int64_t big = int64_t{1} << 60;
  CHECK(compare(vector_of<int64_t>({big + 1}), vector_of<int64_t>({big}), {}).absolute == 1);
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  CHECK(compare(vector_of<int64_t>({highest}), vector_of<int64_t>({lowest}), {}).absolute ==
        0x1p64);
  const uint64_t top = std::numeric_limits<uint64_t>::max();
  const Difference d = compare(vector_of<uint64_t>({top}), vector_of<uint64_t>({top - 1}), {});
  CHECK(d.outside == 1);
  CHECK(d.absolute == 1);
}

TEST_CASE("compare: booleans by truth, not by byte") {
  Tensor a = Tensor::zeros(DType::kBool, Shape{2}), b = Tensor::zeros(DType::kBool, Shape{2});
  static_cast<uint8_t*>(a.data())[0] = 2;
  static_cast<uint8_t*>(b.data())[0] = 1;
  CHECK(compare(a, b, {}).within);
  CHECK_FALSE(identical(a, b));
  static_cast<uint8_t*>(b.data())[1] = 1;
  const Difference d = compare(a, b, {1, 1});
  CHECK(d.outside == 1);
  CHECK(d.index == Shape{1});
}

TEST_CASE("compare: 16-bit floats by value") {
  // float16 0x3c00 = 1, 0x3c01 = 1 + 2^-10; bfloat16 0x3f80 = 1, 0x3f81 = 1 + 2^-7.
  CHECK(compare(bits_of(DType::kFloat16, {0x3c01}), bits_of(DType::kFloat16, {0x3c00}), {})
            .absolute == 0x1p-10);
  CHECK(compare(bits_of(DType::kBFloat16, {0x3f81}), bits_of(DType::kBFloat16, {0x3f80}), {})
            .absolute == 0x1p-7);
  // -0 is 0; NaN payloads do not count.
  const Tensor a = bits_of(DType::kFloat16, {0x8000, 0x7e01});
  const Tensor b = bits_of(DType::kFloat16, {0x0000, 0x7e00});
  CHECK(compare(a, b, {}).within);
  CHECK_FALSE(identical(a, b));
}

TEST_CASE("compare: complex numbers by modulus") {
  using C = std::complex<float>;
  const Difference d = compare(vector_of<C>({{3, 4}}), vector_of<C>({{0, 0}}), {});
  CHECK(d.absolute == 5);
  CHECK(d.actual == 5);
  CHECK(compare(vector_of<C>({{3, 4}}), vector_of<C>({{6, 8}}), {0, 0.5}).within);
  CHECK_FALSE(compare(vector_of<C>({{3, 4}}), vector_of<C>({{6, 8}}), {0, 0.49}).within);
  CHECK(compare(vector_of<C>({{kNaN, 1}}), vector_of<C>({{1, kNaN}}), {}).within);
  CHECK_FALSE(compare(vector_of<C>({{kNaN, 1}}), vector_of<C>({{1, 1}}), {9, 9}).within);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(compare(vector_of<C>({{inf, 1}}), vector_of<C>({{inf, 1}}), {}).within);
  CHECK_FALSE(compare(vector_of<C>({{inf, 1}}), vector_of<C>({{-inf, 1}}), {9, 9}).within);
}

TEST_CASE("compare: strides are honoured and the index is the logical one") {
  std::vector<float> data{0, 1, 2, 3, 4, 5};
  const Tensor turned = Tensor::view_of(DType::kFloat32, data.data(), {3, 2}, {1, 3}, nullptr);
  Tensor plain = turned.clone();
  CHECK(compare(turned, plain, {}).within);
  CHECK(identical(turned, plain));
  static_cast<float*>(plain.data())[3] = 7;  // Row 1, column 1.
  const Difference d = compare(turned, plain, {});
  CHECK(d.index == Shape{1, 1});
  CHECK(d.actual == 4);
  CHECK(d.expected == 7);
  CHECK_FALSE(identical(turned, plain));
}

TEST_CASE("compare: scalars have an empty index, tensors without elements always agree") {
  const Tensor one = Tensor::from(std::span<const float>(std::vector{1.f}), Shape{});
  const Tensor two = Tensor::from(std::span<const float>(std::vector{2.f}), Shape{});
  const Difference d = compare(one, two, {});
  CHECK_FALSE(d.within);
  CHECK(d.index.empty());
  CHECK(compare(Tensor::empty(DType::kFloat32, Shape{0, 2}),
                Tensor::empty(DType::kFloat32, Shape{0, 2}), {})
            .within);
}

TEST_CASE("identical: dtype, shape and every bit") {
  const Tensor a = vector_of<float>({1, kNaN});
  CHECK(identical(a, a.clone()));
  CHECK_FALSE(identical(a, vector_of<float>({1, 2})));
  CHECK_FALSE(
      identical(Tensor::zeros(DType::kInt32, Shape{2}), Tensor::zeros(DType::kFloat32, Shape{2})));
  CHECK_FALSE(
      identical(Tensor::zeros(DType::kInt32, Shape{2}), Tensor::zeros(DType::kInt32, Shape{1, 2})));
  CHECK(identical(Tensor::empty(DType::kInt32, Shape{0}), Tensor::empty(DType::kInt32, Shape{0})));
}

}  // namespace
}  // namespace hasten
