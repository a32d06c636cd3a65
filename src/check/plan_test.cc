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

}  // namespace
}  // namespace hasten
