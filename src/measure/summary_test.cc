// SPDX-License-Identifier: Apache-2.0
#include "measure/summary.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

namespace hasten {
namespace {

using doctest::Approx;

ArmSamples samples(std::vector<std::vector<int64_t>> rounds, std::vector<size_t> numbers) {
  ArmSamples arm;
  arm.rounds = std::move(rounds);
  arm.round_numbers = std::move(numbers);
  return arm;
}

TEST_CASE("latency_ms: the median of all calls") {
  const ArmSamples arm = samples({{1'000'000, 3'000'000}, {2'000'000}}, {0, 1});
  CHECK(latency_ms(arm, 0.95)->value == Approx(2));
}

TEST_CASE("latency_ms: many calls of few rounds do not make the interval narrow") {
  // Each round repeats itself a hundred times: 600 calls, but only six observations.
  std::vector<std::vector<int64_t>> rounds;
  for (int64_t r = 1; r <= 6; ++r) rounds.emplace_back(100, r * 1'000'000);
  const Estimate e = *latency_ms(samples(rounds, {0, 1, 2, 3, 4, 5}), 0.95);
  CHECK(e.value == Approx(3.5));
  CHECK(e.low == Approx(1));  // Ranks 1 and 6 of six, as in the test of median_interval.
  CHECK(e.high == Approx(6));
}

TEST_CASE("latency_ms: of one round its calls tell the spread") {
  const Estimate e = *latency_ms(samples({{1'000'000, 2'000'000, 9'000'000}}, {0}), 0.95);
  CHECK(e.value == Approx(2));
  CHECK(e.low == Approx(1));
  CHECK(e.high == Approx(9));
}

TEST_CASE("summary: an arm that never finished a turn has no figures") {
  const ArmSamples none, some = samples({{5}}, {0});
  CHECK_FALSE(latency_ms(none, 0.95));
  CHECK_FALSE(paired_speedup(none, some, 0.95));
  CHECK_FALSE(paired_speedup(some, none, 0.95));
}

TEST_CASE("paired_speedup: above one means faster than the baseline") {
  const ArmSamples arm = samples({{100}, {200}, {400}}, {0, 1, 2});
  const ArmSamples baseline = samples({{150}, {300}, {600}}, {0, 1, 2});
  const Estimate e = *paired_speedup(arm, baseline, 0.75);
  CHECK(e.value == Approx(1.5));
  CHECK(e.low == Approx(1.5));
  CHECK(e.high == Approx(1.5));
}

TEST_CASE("paired_speedup: only rounds that both took part in count") {
  // Round 1 was slow for whoever was there; it is in one of the lists only.
  const ArmSamples arm = samples({{100}, {100}, {100}}, {0, 2, 5});
  const ArmSamples baseline = samples({{200}, {9000}, {200}, {7000}}, {0, 1, 2, 3});
  const Estimate e = *paired_speedup(arm, baseline, 0.95);
  CHECK(e.value == Approx(2));
  CHECK_FALSE(paired_speedup(samples({{1}}, {4}), baseline, 0.95));
}

TEST_CASE("paired_speedup: a single common round is no evidence") {
  const Estimate e = *paired_speedup(samples({{100}}, {3}), samples({{200}}, {3}), 0.95);
  CHECK(e.value == Approx(2));
  CHECK(e.low == 0);
  CHECK(e.high == std::numeric_limits<double>::infinity());
}

TEST_CASE("round_median: calls too short for the clock still have a ratio") {
  CHECK(round_median(std::vector<int64_t>{0, 0, 0}) == 1);
}

}  // namespace
}  // namespace hasten
