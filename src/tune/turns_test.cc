// SPDX-License-Identifier: Apache-2.0
#include "tune/turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace hasten {
namespace {

using std::chrono::nanoseconds;

ArmSamples steady(int64_t ns, size_t rounds) {
  ArmSamples arm;
  for (size_t r = 0; r < rounds; ++r) {
    arm.rounds.push_back({ns, ns});
    arm.round_numbers.push_back(r);
  }
  return arm;
}

TEST_CASE("warm_up: goes on until a turn is not much faster; a call made just now is the first one") {
  size_t turns = 0;
  std::vector<int64_t> times;  // Of each turn; the last one goes on.
  const Arm arm{.label = "a", .turn = [&](nanoseconds) -> Result<std::vector<int64_t>> {
                  return std::vector{times[std::min(turns++, times.size() - 1)]};
                }};
  const auto turns_for = [&](std::vector<int64_t> series, std::optional<nanoseconds> before) {
    times = std::move(series);
    turns = 0;
    REQUIRE(warm_up(arm, before));
    return turns;
  };
  CHECK(turns_for({1000}, {}) == 2);
  CHECK(turns_for({9000, 2000, 1000, 1000}, {}) == 4);
  CHECK(turns_for({1000}, nanoseconds(1000)) == 1);
  CHECK(turns_for({900}, nanoseconds(1000)) == 1);
  CHECK(turns_for({1000}, nanoseconds(9000)) == 2);  // That call was cold.
}

TEST_CASE("point_of: fewer rounds than the confidence needs are no verdict") {
  const ArmSamples baseline = steady(2'000'000, 8);
  const Point seven = *point_of(steady(1'000'000, 7), &baseline, 4);
  CHECK(seven.verdict == Verdict::kCannotTell);
  CHECK(seven.speedup->estimate == doctest::Approx(2));
  CHECK(seven.speedup->low == 0);
  CHECK(std::isinf(seven.speedup->high));
  CHECK(seven.to_json()["speedup"]["high"].is_null());
  CHECK(seven.throughput == doctest::Approx(4000));
  const Point eight = *point_of(steady(1'000'000, 8), &baseline, 4);
  CHECK(eight.verdict == Verdict::kFaster);
  CHECK(eight.calls == 16);
}

TEST_CASE("point_of: an original that was kept from running makes a speed-up doubtful") {
  ArmSamples starved = steady(900'000'000, 8);
  starved.label = "original";
  const ArmSamples arm = steady(600'000, 8);
  CHECK(point_of(arm, &starved, 1)->doubt.empty());  // As far as this race knows.
  CHECK(point_of(arm, &starved, 1, 180'000'001)->doubt.empty());
  const std::string doubt = point_of(arm, &starved, 1, 800'000)->doubt;
  CHECK(doubt.find("calls of original") != std::string::npos);
  CHECK(doubt.find("took 900 ms or more, and the fastest took 0.8 ms") != std::string::npos);
  starved.rounds.front().front() = 800'000;
  CHECK(point_of(arm, &starved, 1)->doubt == doubt);
  CHECK(point_of(steady(1'000'000'000, 8), &starved, 1)->doubt.empty());  // No speed-up.
}

TEST_CASE("point_of: whoever was sent off early, far behind the original, is slower") {
  const ArmSamples baseline = steady(1'000'000, 8);
  ArmSamples sent_off = steady(3'000'000, 2);
  sent_off.dropped = true;
  CHECK(point_of(sent_off, &baseline, 1)->verdict == Verdict::kSlower);
  CHECK(point_of(sent_off, &baseline, 1)->left_early);
  // Behind the best of the race, but not behind the original.
  sent_off = steady(900'000, 2);
  sent_off.dropped = true;
  CHECK(point_of(sent_off, &baseline, 1)->verdict == Verdict::kCannotTell);
}

TEST_CASE("describe: says how many rounds others spoiled, if any") {
  RaceResult race{.arms = {}, .reason = StopReason::kConverged, .rounds = 12, .discarded = 0};
  CHECK(describe(race) == "12 rounds, enough to tell");
  race.discarded = 3;
  CHECK(describe(race) == "12 rounds, enough to tell; 3 more were left out, other programs disturbed them");
  race = {.arms = {}, .reason = StopReason::kRoundsSpent, .rounds = 1, .discarded = 1};
  CHECK(describe(race) ==
        "1 round, as many as there may be; 1 more was left out, other programs disturbed it");
}

TEST_CASE("samples_json: the journal has every call that counts, and how many rounds do not") {
  RaceResult race;
  race.arms.push_back(steady(7, 1));
  race.arms[0].label = "a";
  race.arms[0].discarded = 2;
  CHECK(samples_json(race, 4, "measure").dump() ==
        R"({"stage":"measure","batch_size":4,"stopped":"rounds_spent","arms":[{"label":"a",)"
        R"("rounds":[{"round":0,"calls_ns":[7,7]}],"discarded":2}]})");
}

}  // namespace
}  // namespace hasten
