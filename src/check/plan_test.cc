// SPDX-License-Identifier: Apache-2.0
#include "check/plan.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace hasten {
namespace {

struct Planned {
  std::vector<int64_t> sizes;
  std::vector<std::string> why;
};

Planned plan(int64_t min, int64_t max, std::vector<int64_t> seen) {
  Planned out;
  for (const PlannedSize& one : plan_sizes({{"B", min, max, std::move(seen)}})) {
    CHECK(one.symbol == "B");
    out.sizes.push_back(one.size);
    out.why.push_back(one.why);
  }
  return out;
}

TEST_CASE("plan_sizes: recorded at 1 and 2, it looks at odd and larger sizes beyond") {
  const Planned planned = plan(1, 2, {1, 2});
  CHECK(planned.sizes == std::vector<int64_t>{1, 2, 3, 5});
  CHECK(planned.why == std::vector<std::string>{"smallest", "largest", "odd", "not recorded"});
}

TEST_CASE("plan_sizes: recorded at one size, that may be baked in") {
  CHECK(plan(1, 1, {1}).sizes == std::vector<int64_t>{1, 3, 5});
  CHECK(plan(4, 4, {4, 4}).sizes == std::vector<int64_t>{4, 5, 7});
  CHECK(plan(3, 3, {3}).sizes == std::vector<int64_t>{3, 5, 7});
}

TEST_CASE("plan_sizes: a wide recorded range is looked at inside") {
  CHECK(plan(1, 8, {8, 1}).sizes == std::vector<int64_t>{1, 8, 3, 4});
  CHECK(plan(10, 20, {10, 20, 15}).sizes == std::vector<int64_t>{10, 20, 11, 16});
}

TEST_CASE("plan_sizes: a declared range is never left") {
  CHECK(plan(1, 64, {1, 2}).sizes == std::vector<int64_t>{1, 64, 3, 32});
  CHECK(plan(1, 3, {1, 2}).sizes == std::vector<int64_t>{1, 3});
  CHECK(plan(1, 2, {1}).sizes == std::vector<int64_t>{1, 2});
  CHECK(plan(2, 4, {}).sizes == std::vector<int64_t>{2, 4, 3});
  CHECK(plan(8, 128, {16}).sizes == std::vector<int64_t>{8, 128, 9, 68});
}

TEST_CASE("plan_sizes: a symbol without a range is bounded by what was seen") {
  CHECK(plan(0, 0, {2}).sizes == std::vector<int64_t>{2, 3, 5});
  CHECK(plan(0, 0, {}).sizes.empty());
}

TEST_CASE("plan_sizes: samples beyond the stated range widen it") {
  CHECK(plan(1, 4, {1, 9}).sizes == std::vector<int64_t>{1, 9, 3, 5});
}

TEST_CASE("plan_sizes: every symbol is planned for itself, one without a name not at all") {
  const auto planned = plan_sizes({{"B", 1, 2, {1, 2}}, {"", 3, 3, {3}}, {"T", 5, 9, {5, 9}}});
  std::multiset<std::string> symbols;
  for (const PlannedSize& one : planned) symbols.insert(one.symbol);
  CHECK(symbols.count("B") == 4);
  CHECK(symbols.count("T") == 4);
  CHECK(symbols.size() == 8);
  CHECK(plan_sizes({}).empty());
}

TEST_CASE("plan_sizes: no size twice, and none of the recorded ones but the ends") {
  for (int64_t max = 1; max <= 40; ++max) {
    for (int64_t other = 1; other <= max; ++other) {
      const std::vector<int64_t> seen = {1, other};
      const Planned planned = plan(1, max, seen);
      const std::set<int64_t> distinct(planned.sizes.begin(), planned.sizes.end());
      CHECK(distinct.size() == planned.sizes.size());
      for (int64_t size : planned.sizes) {
        if (size != 1 && size != max) CHECK(size != other);
      }
    }
  }
}

template <class T>
std::vector<Tensor> one(std::vector<T> values) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  std::vector<Tensor> tensors;
  tensors.push_back(Tensor::from<T>(values, shape));
  return tensors;
}

TEST_CASE("other_values: the same elements in another order, floating-point ones halved") {
  std::vector<Tensor> inputs = one<int64_t>({7, 0, 3});
  inputs.push_back(std::move(one<float>({8, 8}).front()));
  inputs.push_back(std::move(one<double>({-4}).front()));
  inputs.push_back(std::move(one<uint8_t>({}).front()));
  const std::vector<Tensor> others = other_values(inputs);
  const auto whole = others[0].values<int64_t>();
  CHECK(std::vector<int64_t>(whole.begin(), whole.end()) == std::vector<int64_t>{0, 3, 7});
  const auto equal = others[1].values<float>();
  CHECK(std::vector<float>(equal.begin(), equal.end()) == std::vector<float>{4, 4});
  CHECK(others[2].values<double>()[0] == -2);
  CHECK(others[3].size() == 0);
  CHECK(inputs[0].values<int64_t>()[0] == 7);
}

TEST_CASE("computes_wide_integers: only where 64-bit integers come in and nothing else comes out") {
  CHECK(computes_wide_integers(one<int64_t>({1}), one<int64_t>({2})));
  CHECK(computes_wide_integers(one<uint64_t>({1}), one<uint64_t>({2})));
  CHECK_FALSE(computes_wide_integers(one<int64_t>({1}), one<float>({2})));
  CHECK_FALSE(computes_wide_integers(one<float>({1}), one<int64_t>({2})));
  CHECK_FALSE(computes_wide_integers(one<int32_t>({1}), one<int64_t>({2})));
  CHECK_FALSE(computes_wide_integers(one<int64_t>({}), one<int64_t>({})));
  std::vector<Tensor> mixed = one<int64_t>({1});
  mixed.push_back(std::move(one<float>({0.5F}).front()));
  CHECK_FALSE(computes_wide_integers(one<int64_t>({1}), mixed));
}

TEST_CASE("beyond_32_bits: 64-bit integers leave the range, the sign and the others stay") {
  std::vector<Tensor> inputs = one<int64_t>({0, 2, -3});
  inputs.push_back(std::move(one<uint64_t>({7}).front()));
  inputs.push_back(std::move(one<int32_t>({4}).front()));
  const std::vector<Tensor> moved = beyond_32_bits(inputs);
  const auto wide = moved[0].values<int64_t>();
  CHECK(std::vector<int64_t>(wide.begin(), wide.end()) ==
        std::vector<int64_t>{5'000'000'000, 5'000'000'002, -5'000'000'003});
  CHECK(moved[1].values<uint64_t>()[0] == 5'000'000'007);
  CHECK(moved[2].values<int32_t>()[0] == 4);
  CHECK(inputs[0].values<int64_t>()[1] == 2);
}

}  // namespace
}  // namespace hasten
