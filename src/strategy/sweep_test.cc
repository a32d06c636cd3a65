// SPDX-License-Identifier: Apache-2.0
#include "strategy/strategy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace hasten {
namespace {

// The batch size at which the sweep ends, of (batch size, rows per second); none: never.
std::optional<int> stops_at(const std::vector<std::pair<int, double>>& sizes) {
  SweepIsFlat rule;
  for (const auto& [batch_size, throughput] : sizes) {
    if (rule.done(throughput)) return batch_size;
  }
  return std::nullopt;
}

TEST_CASE("SweepIsFlat: two sizes in a row that gain less than 5 % end the sweep") {
  CHECK(stops_at({{1, 100}, {2, 190}, {4, 350}, {8, 500}, {16, 510}, {32, 515}, {64, 2000}}) == 32);
  CHECK(stops_at({{1, 100}, {2, 90}, {4, 80}, {8, 1000}}) == 4);
  CHECK(stops_at({{1, 100}, {2, 200}, {4, 400}, {8, 800}}) == std::nullopt);
}

TEST_CASE("SweepIsFlat: a dip does not make the next size a gain") {
  // 480 is far above the 300 before it, and still below the 500 of batch 4.
  CHECK(stops_at({{1, 100}, {2, 300}, {4, 500}, {8, 300}, {16, 480}, {32, 900}}) == 16);
  // Once: the next size rises above everything before it, and the count begins again.
  CHECK(stops_at({{1, 100}, {2, 60}, {4, 200}, {8, 190}, {16, 209}, {32, 300}}) == 16);
  CHECK(stops_at({{1, 100}, {2, 60}, {4, 200}, {8, 190}, {16, 210}, {32, 300}}) == std::nullopt);
}

TEST_CASE("SweepIsFlat: small gains do not add up") {
  // 4 % and 4 % are 8 % over batch 4, but each size is compared with the best before it.
  CHECK(stops_at({{1, 100}, {2, 200}, {4, 400}, {8, 416}, {16, 432}, {32, 900}}) == 16);
}

TEST_CASE("SweepIsFlat: a size that could not be measured gains nothing") {
  CHECK(stops_at({{1, 100}, {2, std::nan("")}, {4, std::nan("")}}) == 4);
  CHECK(stops_at({{1, 0}, {2, 0}}) == 2);
  CHECK(stops_at({{1, std::nan("")}, {2, 100}, {4, 200}}) == std::nullopt);
}

TEST_CASE("sizes_to_measure: given sizes are sorted, distinct and above 0") {
  StrategyOptions options;
  CHECK(sizes_to_measure(options, {8, 1, 8, 0, -2, 3}, true) == std::vector<int64_t>{1, 3, 8});
}

TEST_CASE("sizes_to_measure: none given means powers of two up to 64") {
  const std::vector<int64_t> powers = {1, 2, 4, 8, 16, 32, 64};
  CHECK(sizes_to_measure({}, {}, true) == powers);
  CHECK(sizes_to_measure({}, {0}, true) == powers);
}

TEST_CASE("sizes_to_measure: min_latency and models without a batch axis know one size") {
  StrategyOptions latency;
  latency.name = StrategyName::kMinLatency;
  CHECK(sizes_to_measure(latency, {4, 8}, true) == std::vector<int64_t>{1});
  CHECK(sizes_to_measure({}, {4, 8}, false) == std::vector<int64_t>{1});
  CHECK(sizes_to_measure({}, {}, false) == std::vector<int64_t>{1});
}

}  // namespace
}  // namespace hasten
