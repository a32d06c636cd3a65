// SPDX-License-Identifier: Apache-2.0
#include "strategy/strategy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace hasten {
namespace {

// The batch size at which the sweep ends, from (batch size, ns per call).
std::optional<int> stops_at(ThroughputSaturated rule,
                            const std::vector<std::pair<int, double>>& times) {
  for (const auto& [batch_size, ns] : times) {
    if (rule.done(batch_size * 1e9 / ns)) return batch_size;
  }
  return std::nullopt;
}

TEST_CASE("ThroughputSaturated: the reference's examples stop where the reference stops") {
  CHECK(stops_at(ThroughputSaturated(0.05, 2),
                 {{1, 150}, {2, 201}, {4, 400}, {8, 798}, {16, 1596}}) == 16);
  // 698 at 8 is a new best and starts the count again.
  CHECK(stops_at(ThroughputSaturated(0.05, 1),
                 {{1, 150}, {2, 201}, {4, 400}, {8, 698}, {16, 1496}, {32, 3092}}) == 32);
}

TEST_CASE("ThroughputSaturated: a limit of 0 stops at the first size that gains too little") {
  CHECK(stops_at(ThroughputSaturated(0.05, 0), {{1, 100}, {2, 200}}) == 2);
  CHECK(stops_at(ThroughputSaturated(0.05, 0), {{1, 100}, {2, 150}, {4, 299}}) == 4);
}

TEST_CASE("ThroughputSaturated: a gain of exactly the ratio is a gain") {
  // new * (1 - gain) < best: 200 * 0.5 is not below 100.
  ThroughputSaturated rule(0.5, 0);
  CHECK_FALSE(rule.done(100));
  CHECK_FALSE(rule.done(200));
  CHECK(rule.done(399));
}

TEST_CASE("ThroughputSaturated: a size that could not be measured gains nothing") {
  ThroughputSaturated rule(0.05, 1);
  CHECK_FALSE(rule.done(100));
  CHECK_FALSE(rule.done(std::nan("")));
  CHECK(rule.done(std::nan("")));
  ThroughputSaturated from_the_start(0.05, 2);
  CHECK_FALSE(from_the_start.done(std::nan("")));
  CHECK_FALSE(from_the_start.done(100));
  CHECK_FALSE(from_the_start.done(200));
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
