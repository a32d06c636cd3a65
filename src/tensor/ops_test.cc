// SPDX-License-Identifier: Apache-2.0
#include "tensor/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "tensor/difference.h"
#include "tensor/test_support.h"

namespace hasten {
namespace {

using testing::shape_of;
using Doubles = std::vector<double>;

Tensor counted(Shape shape) {
  std::vector<int> values(element_count(shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  return Tensor::from(std::span<const int>(values), shape);
}

// A view of `tensor`, which must outlive it, with its two axes exchanged.
Tensor transposed(const Tensor& tensor) {
  const auto shape = tensor.shape(), strides = tensor.strides();
  return Tensor::view_of(tensor.dtype(), const_cast<void*>(tensor.data()), {shape[1], shape[0]},
                         {strides[1], strides[0]}, nullptr);
}

TEST_CASE("cycled: rows come in order and start again past the end") {
  const Tensor rows = counted({3, 2});
  CHECK(to_doubles(cycled(rows, 0, 2)) == Doubles{0, 1, 2, 3});
  CHECK(to_doubles(cycled(rows, 0, 7)) == Doubles{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1});
  CHECK(to_doubles(cycled(rows, 1, 3)) == Doubles{0, 1, 0, 2, 3, 2, 4, 5, 4});
  CHECK(shape_of(cycled(rows, 1, 3)) == Shape{3, 3});
  CHECK(shape_of(cycled(rows, 0, 0)) == Shape{0, 2});
}

TEST_CASE("cycled: strided tensors are cycled by their logical order") {
  const Tensor rows = counted({2, 3});
  CHECK(to_doubles(cycled(transposed(rows), 0, 4)) == Doubles{0, 3, 1, 4, 2, 5, 0, 3});
}

TEST_CASE("cycled: nothing can only give nothing") {
  const Tensor none = Tensor::empty(DType::kFloat32, Shape{0, 2});
  CHECK(shape_of(cycled(none, 0, 0)) == Shape{0, 2});
  CHECK_THROWS_AS(cycled(none, 0, 1), std::logic_error);
  CHECK(shape_of(cycled(none, 1, 5)) == Shape{0, 5});
  CHECK_THROWS_AS(cycled(none, 2, 1), std::logic_error);
}

TEST_CASE("sliced: a compact copy of a part") {
  const Tensor t = counted({2, 3});
  CHECK(to_doubles(sliced(t, 1, 1, 3)) == Doubles{1, 2, 4, 5});
  CHECK(to_doubles(sliced(transposed(t), 0, 1, 2)) == Doubles{1, 4});
  CHECK(sliced(transposed(t), 0, 0, 3).is_compact());
  CHECK(shape_of(sliced(t, 0, 1, 1)) == Shape{0, 3});
  CHECK_THROWS_AS(sliced(t, 0, 1, 3), std::logic_error);
  CHECK_THROWS_AS(sliced(t, 0, 2, 1), std::logic_error);
}

TEST_CASE("concatenated: joins along the axis, strided and empty parts included") {
  const Tensor a = counted({2, 1}), b = counted({2, 2}), none = counted({2, 0});
  const std::vector<Tensor> parts = [&] {
    std::vector<Tensor> list;
    list.push_back(a.clone());
    list.push_back(none.clone());
    list.push_back(transposed(b));
    return list;
  }();
  const Result<Tensor> joined = concatenated(parts, 1);
  REQUIRE(joined);
  CHECK(to_doubles(*joined) == Doubles{0, 0, 2, 1, 1, 3});
  CHECK(shape_of(*joined) == Shape{2, 3});
}

TEST_CASE("concatenated: parts that do not fit are refused, and the message says why") {
  std::vector<Tensor> parts;
  CHECK(concatenated(parts, 0).error().code == Code::kInvalidArgument);
  parts.push_back(counted({2, 3}));
  CHECK_FALSE(concatenated(parts, 2));
  parts.push_back(counted({2, 2}));
  CHECK(concatenated(parts, 1));
  CHECK(concatenated(parts, 0).error().message ==
        "cannot concatenate shape [2,3] with [2,2] at axis 0");
  parts.push_back(Tensor::zeros(DType::kFloat32, Shape{2, 2}));
  CHECK(concatenated(parts, 1).error().message == "cannot concatenate int32 with float32");
}

TEST_CASE("to_doubles: every kind of number") {
  const std::vector<std::complex<float>> complex{{3, 4}};
  CHECK(to_doubles(Tensor::from(std::span<const std::complex<float>>(complex), Shape{1})) ==
        Doubles{5});
  const bool flags[] = {true, false};
  CHECK(to_doubles(Tensor::from(std::span<const bool>(flags), Shape{2})) == Doubles{1, 0});
  const int64_t low[] = {std::numeric_limits<int64_t>::min()};
  CHECK(to_doubles(Tensor::from(std::span<const int64_t>(low), Shape{})) == Doubles{-0x1p63});
  CHECK(shape_text(Shape{}) == "[]");
  CHECK(shape_text(Shape{2, 3}) == "[2,3]");
}

TEST_CASE("float16: rounds to the nearest, ties to even, and overflows to infinity") {
  // numpy: np.array(bits, np.uint32).view(np.float32).astype(np.float16).view(np.uint16)
  const std::vector<std::pair<uint32_t, uint16_t>> known{
      {0x0, 0x0},           {0x80000000, 0x8000}, {0x3f800000, 0x3c00}, {0xc0000000, 0xc000},
      {0x477fe000, 0x7bff}, {0x477feffd, 0x7bff}, {0x477ff000, 0x7c00}, {0x322bcc77, 0x0},
      {0x33800000, 0x1},    {0x33000000, 0x0},    {0x33000001, 0x1},    {0x38800000, 0x400},
      {0x387fc000, 0x3ff},  {0x387fe000, 0x400},  {0x3eaaaaab, 0x3555}, {0x3f801000, 0x3c00},
      {0x3f803000, 0x3c02}, {0x7f800000, 0x7c00}, {0xff800000, 0xfc00}};
  for (const auto& [single, half] : known) {
    CAPTURE(single);
    CHECK(float_to_half(std::bit_cast<float>(single)) == half);
  }
  const std::vector<std::pair<uint16_t, float>> back{{0x0001, 5.960464477539063e-08f},
                                                     {0x03ff, 6.097555160522461e-05f},
                                                     {0x0400, 6.103515625e-05f},
                                                     {0x3555, 0.333251953125f},
                                                     {0x7bff, 65504.0f},
                                                     {0x8001, -5.960464477539063e-08f}};
  for (const auto& [half, single] : back) CHECK(half_to_float(half) == single);
}

TEST_CASE("float16 and bfloat16: every value survives the way to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (std::isnan(half_to_float(half))) {
      REQUIRE((half & 0x7fff) > 0x7c00);
      REQUIRE(std::isnan(half_to_float(float_to_half(half_to_float(half)))));
    } else {
      REQUIRE(float_to_half(half_to_float(half)) == half);
    }
    if (std::isnan(bfloat16_to_float(half))) {
      REQUIRE(std::isnan(bfloat16_to_float(float_to_bfloat16(bfloat16_to_float(half)))));
    } else {
      REQUIRE(float_to_bfloat16(bfloat16_to_float(half)) == half);
    }
  }
}

TEST_CASE("bfloat16: rounds to the nearest, ties to even") {
  // torch.tensor([...]).to(torch.bfloat16).view(torch.int16)
  const std::vector<std::pair<float, uint16_t>> known{
      {1.0f, 0x3f80},        {0.333333343f, 0x3eab}, {3.3961775e38f, 0x7f80},
      {1.00390625f, 0x3f80}, {1.01171875f, 0x3f82},  {-1e-40f, 0x8001}};
  for (const auto& [single, bits] : known) CHECK(float_to_bfloat16(single) == bits);
}

// Expected values from mt19937_64 and the same formulas written out in Python.
TEST_CASE("random_tensor: the same on every machine") {
  CHECK(to_doubles(random_tensor(DType::kInt8, Shape{8}, 7, FillRange{-3, 3})) ==
        Doubles{-2, 1, -2, -1, 2, -2, -3, 1});
  CHECK(to_doubles(random_tensor(DType::kBool, Shape{8}, 7)) == Doubles{1, 0, 0, 0, 1, 0, 1, 0});
  CHECK(to_doubles(random_tensor(DType::kFloat32, Shape{4}, 7, FillRange{10, 20})) ==
        Doubles{17.543853759765625, 19.493011474609375, 11.174142837524414, 18.919132232666016});
  CHECK(to_doubles(random_tensor(DType::kFloat32, Shape{2, 3}, 7)) ==
        Doubles{-0.972562849521637, 0.8726951479911804, 1.455178141593933, 0.5473099946975708,
                -0.8622483015060425, -1.6098339557647705});
}

TEST_CASE("random_tensor: floats are standard normal, integers 0 and 1 unless told") {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    CAPTURE(to_string(dtype));
    const Doubles values = to_doubles(random_tensor(dtype, Shape{100, 200}, 1));
    double sum = 0, squares = 0;
    size_t beyond_two = 0;
    for (const double v : values) {
      sum += v;
      squares += v * v;
      beyond_two += std::abs(v) > 1.959964;
    }
    CHECK(sum / 20000 == doctest::Approx(0).epsilon(1).scale(0.03));
    CHECK(squares / 20000 == doctest::Approx(1).epsilon(0.03));
    CHECK(static_cast<double>(beyond_two) / 20000 == doctest::Approx(0.05).epsilon(0.1));
  }
  const Doubles indices = to_doubles(random_tensor(DType::kInt64, Shape{1000}, 3));
  CHECK(*std::min_element(indices.begin(), indices.end()) == 0);
  CHECK(*std::max_element(indices.begin(), indices.end()) == 1);
}

TEST_CASE("random_tensor: integer ranges include both ends and stay inside the dtype") {
  const Doubles bytes =
      to_doubles(random_tensor(DType::kUInt8, Shape{5000}, 3, FillRange{-9, 999}));
  CHECK(*std::min_element(bytes.begin(), bytes.end()) == 0);
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == 255);
  const Doubles wide =
      to_doubles(random_tensor(DType::kUInt64, Shape{100}, 3, FillRange{0, 0x1p64}));
  CHECK(*std::max_element(wide.begin(), wide.end()) > 0x1p63);
  const Doubles fixed = to_doubles(random_tensor(DType::kInt32, Shape{3}, 3, FillRange{5, 5}));
  CHECK(fixed == Doubles{5, 5, 5});
  CHECK_THROWS_AS(random_tensor(DType::kInt32, Shape{3}, 3, FillRange{2.1, 2.9}), std::logic_error);
}

TEST_CASE("random_tensor: another seed, other values; complex parts are independent") {
  const Tensor a = random_tensor(DType::kComplex64, Shape{4}, 1);
  CHECK(identical(a, random_tensor(DType::kComplex64, Shape{4}, 1)));
  CHECK_FALSE(identical(a, random_tensor(DType::kComplex64, Shape{4}, 2)));
  const auto first = a.values<std::complex<float>>()[0];
  CHECK(first.real() != first.imag());
}

}  // namespace
}  // namespace hasten
