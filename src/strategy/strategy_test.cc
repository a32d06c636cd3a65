// SPDX-License-Identifier: Apache-2.0
#include "strategy/strategy.h"

#include "strategy/test_trials.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace hasten {
namespace {

TEST_CASE("Strategy: every name reads back") {
  for (const char* name :
       {"one-backend", "first-wins", "max-throughput", "min-latency", "latency-budget"}) {
    CHECK(to_string(strategy_from_string(name).value()) == name);
  }
  CHECK_FALSE(strategy_from_string("fastest"));
}

TEST_CASE("Strategy: the options stand in the report") {
  StrategyOptions options = with(StrategyName::kLatencyBudget);
  options.latency_budget_ms = 50;
  CHECK(to_json(options).dump() ==
        R"({"name":"latency-budget","min_speedup":0.01,"latency_budget_ms":50.0,)"
        R"("performance_validation":true})");
}

TEST_CASE("MaxThroughput: the best batch size of the best candidate wins") {
  const Trial baseline = test_baseline({test_point(1, 10, 0, kSame), test_point(4, 20, 0, kSame)});
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 5, 10, kFaster), test_point(4, 18, 20, kFaster)}),
      test_trial("b", {test_point(1, 9, 10, kFaster), test_point(4, 10, 20, kFaster)})};
  const auto choice = choose(with(StrategyName::kMaxThroughput), trials, baseline);
  CHECK(label_of(choice, trials) == "b");
  CHECK(choice->selected_batch_size == 4);
  CHECK(choice->throughput == doctest::Approx(400));
  CHECK(choice->speedup->estimate == 2);
  CHECK(choice->passed);
  CHECK(says(choice->why, "b has the highest throughput at batch size 4"));
  CHECK(choice->runners_up == std::vector<size_t>{0});
}

TEST_CASE("MaxThroughput: equal throughput goes to the smaller batch size") {
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(8, 40, 80, kFaster), test_point(4, 20, 40, kFaster)})};
  const Trial baseline = test_baseline({test_point(4, 40, 0, kSame), test_point(8, 80, 0, kSame)});
  CHECK(choose(with(StrategyName::kMaxThroughput), trials, baseline)->selected_batch_size == 4);
}

TEST_CASE("MaxThroughput: why the original stays is told at one batch size, in one unit") {
  // The candidate is faster at 8, where the original does worse than at 1: it never gets there.
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 20, 10, kSlower), test_point(8, 100, 200, kFaster)})};
  const Trial baseline = test_baseline({test_point(1, 10, 0, kSame), test_point(8, 200, 0, kSame)});
  const auto choice = choose(with(StrategyName::kMaxThroughput), trials, baseline);
  REQUIRE(choice);
  CHECK(choice->why ==
        "the original model is kept: the best candidate, a, is 0.5 times as fast as the original "
        "(0.5 … 0.5) at batch size 1");
}

TEST_CASE("MaxThroughput: the original stays unless a candidate is strictly and surely faster") {
  struct Case {
    double throughput;
    Verdict verdict;
    std::string winner, why;
  };
  const Case cases[] = {
      {100, kSame, "original", "the same within the noise"},  // Ties stay.
      {99, kSlower, "original", "is 0.99 times as fast as the original (0.99 … 0.99) at batch size 1"},
      {100.5, kFaster, "a", ""},
      {103, kSame, "original", "the same within the noise"},
      {130, kCannotTell, "original", "cannot be told from the noise"},
      {130, kFaster, "a", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.throughput);
    const std::vector<Trial> trials = {test_speed("a", c.throughput, 100, c.verdict)};
    const auto choice = choose(with(StrategyName::kMaxThroughput), trials, original());
    CHECK(label_of(choice, trials) == c.winner);
    REQUIRE(choice);
    CHECK(says(choice->why, c.why));
    CHECK(choice->fell_back == (c.winner == "original"));
    if (choice->fell_back) CHECK(choice->speedup == Interval{1, 1, 1});
  }
}

TEST_CASE("MaxThroughput: one that is surely faster wins over one that perhaps is faster still") {
  const std::vector<Trial> trials = {test_speed("a", 140, 100, kCannotTell),
                                     test_speed("b", 120, 100, kFaster)};
  CHECK(label_of(choose(with(StrategyName::kMaxThroughput), trials, original()), trials) == "b");
}

TEST_CASE("MaxThroughput: figures at different batch sizes need intervals that do not touch") {
  // The original does best at 2 (200/s), the candidate at 4, where it is the faster one.
  Trial baseline = test_baseline({test_point(2, 10, 0, kSame), test_point(4, 25, 0, kSame)});
  std::vector<Trial> trials = {test_trial("a", {test_point(4, 19.5, 25, kFaster)})};
  CHECK(label_of(choose(with(StrategyName::kMaxThroughput), trials, baseline), trials) == "a");
  baseline.points[0].latency_ms = {.estimate = 10, .low = 9, .high = 11};
  CHECK(label_of(choose(with(StrategyName::kMaxThroughput), trials, baseline), trials) ==
        "original");
}

TEST_CASE("MaxThroughput: a size that only the candidate can run has no verdict and may win") {
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 10, 10, kSame), test_point(64, 320, 0, kCannotTell)})};
  const auto choice = choose(with(StrategyName::kMaxThroughput), trials, original());
  CHECK(label_of(choice, trials) == "a");
  CHECK(choice->selected_batch_size == 64);
  CHECK_FALSE(choice->speedup);
}

TEST_CASE("MaxThroughput: candidates within 1 % tie and the earlier one wins") {
  struct Case {
    double first, second;
    std::string winner;
  };
  const Case cases[] = {{200, 200, "a"}, {200, 201.9, "a"}, {200, 202.1, "b"}, {202, 200, "a"}};
  for (const Case& c : cases) {
    CAPTURE(c.second);
    const std::vector<Trial> trials = {test_speed("a", c.first, 100, kFaster),
                                       test_speed("b", c.second, 100, kFaster)};
    CHECK(label_of(choose(with(StrategyName::kMaxThroughput), trials, original()), trials) ==
          c.winner);
  }
}

TEST_CASE("MinLatency: the lowest median latency at batch size 1 wins, larger sizes do not count") {
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 6, 10, kFaster), test_point(8, 7, 80, kFaster)}),
      test_trial("b", {test_point(1, 5, 10, kFaster), test_point(8, 90, 80, kSlower)})};
  const Trial baseline = test_baseline({test_point(1, 10, 0, kSame), test_point(8, 80, 0, kSame)});
  const auto choice = choose(with(StrategyName::kMinLatency), trials, baseline);
  CHECK(label_of(choice, trials) == "b");
  CHECK(choice->selected_batch_size == 1);
  CHECK(choice->latency_ms == 5);
  CHECK(choice->speedup->estimate == 2);
}

TEST_CASE("MinLatency: without batch size 1 the smallest measured size decides") {
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(2, 6, 10, kFaster), test_point(4, 7, 20, kFaster)}),
      test_trial("b", {test_point(4, 5, 20, kFaster)})};
  const Trial baseline = test_baseline({test_point(2, 10, 0, kSame), test_point(4, 20, 0, kSame)});
  const auto choice = choose(with(StrategyName::kMinLatency), trials, baseline);
  CHECK(label_of(choice, trials) == "a");
  CHECK(choice->runners_up == std::vector<size_t>{1});
}

TEST_CASE("MinLatency: the original stays when no candidate is surely faster") {
  const std::vector<Trial> trials = {test_speed("a", 125, 100, kCannotTell),
                                     test_speed("b", 90, 100, kSlower)};
  const auto choice = choose(with(StrategyName::kMinLatency), trials, original());
  CHECK(label_of(choice, trials) == "original");
  CHECK(choice->latency_ms == 10);
}

StrategyOptions within_budget(double ms) {
  StrategyOptions options = with(StrategyName::kLatencyBudget);
  options.latency_budget_ms = ms;
  return options;
}

TEST_CASE("LatencyBudget: the highest throughput whose latency is within the budget wins") {
  const Trial baseline = test_baseline({test_point(1, 10, 0, kSame), test_point(4, 36, 0, kSame)});
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 4, 10, kFaster), test_point(4, 20, 36, kFaster)}),
      test_trial("b", {test_point(1, 5, 10, kFaster), test_point(4, 15, 36, kFaster)})};
  struct Case {
    double budget;
    std::string winner;
    int64_t batch_size;
  };
  const Case cases[] = {{100, "b", 4}, {15, "b", 4}, {14.99, "a", 1}, {4, "a", 1}};
  for (const Case& c : cases) {
    CAPTURE(c.budget);
    const auto choice = choose(within_budget(c.budget), trials, baseline);
    CHECK(label_of(choice, trials) == c.winner);
    REQUIRE(choice);
    CHECK(choice->selected_batch_size == c.batch_size);
  }
}

TEST_CASE(
    "LatencyBudget: none within it is an error that names the nearest, even if the original fits") {
  const std::vector<Trial> trials = {
      test_trial("a", {test_point(1, 8, 2, kSlower), test_point(4, 30, 8, kSlower)}),
      test_trial("b:threads=2", {test_point(2, 7.5, 4, kSlower)}), test_wrong("c", 100000)};
  const Trial baseline = test_baseline({test_point(1, 2, 0, kSame)});
  for (bool validation : {true, false}) {
    StrategyOptions options = within_budget(5);
    options.performance_validation = validation;
    const auto choice = choose(options, trials, baseline);
    REQUIRE_FALSE(choice);
    CHECK(choice.error().code == Code::kUnsupported);
    CHECK(says(choice.error().message, "within 5 ms"));
    CHECK(says(choice.error().message, "b:threads=2 at batch size 2 with 7.5 ms"));
    CHECK(says(choice.error().hint, "7.5 ms"));
  }
}

TEST_CASE("LatencyBudget: an original over the budget at every size is no bar") {
  const std::vector<Trial> trials = {test_trial("a", {test_point(1, 9, 0, kCannotTell)})};
  const Trial baseline = test_baseline({test_point(1, 50, 0, kSame)});
  CHECK(label_of(choose(within_budget(10), trials, baseline), trials) == "a");
}

TEST_CASE("LatencyBudget: a compliant candidate that is not faster gives way to the original") {
  const std::vector<Trial> trials = {test_speed("a", 90, 100, kSlower)};
  const auto choice = choose(within_budget(50), trials, original());
  CHECK(label_of(choice, trials) == "original");
  CHECK(choice->fell_back);
}

TEST_CASE("LatencyBudget: a budget is needed") {
  for (const auto& budget : {std::optional<double>(), std::optional(0.0), std::optional(-1.0),
                             std::optional(std::nan(""))}) {
    StrategyOptions options = with(StrategyName::kLatencyBudget);
    options.latency_budget_ms = budget;
    const auto choice = choose(options, {}, original());
    REQUIRE_FALSE(choice);
    CHECK(choice.error().code == Code::kInvalidArgument);
  }
}

TEST_CASE("Validation off: the best correct candidate wins although the original is faster") {
  for (const StrategyName name : {StrategyName::kOneBackend, StrategyName::kMaxThroughput,
                                  StrategyName::kMinLatency, StrategyName::kLatencyBudget}) {
    CAPTURE(to_string(name));
    StrategyOptions options = within_budget(1000);
    options.name = name;
    options.performance_validation = false;
    const std::vector<Trial> trials = {test_speed("a", 50, 100, kSlower),
                                       test_speed("b", 80, 100, kSlower), test_wrong("c", 900)};
    for (const auto& baseline : {std::optional(original()), std::optional<Trial>()}) {
      const auto choice = choose(options, trials, baseline);
      CHECK(label_of(choice, trials) == "b");
      CHECK_FALSE(choice->passed);
    }
  }
}

TEST_CASE("Nothing left: who falls back to the original, and who fails") {
  struct Case {
    StrategyName name;
    bool validation, baseline, falls_back;
  };
  const Case cases[] = {
      // The reference's table of validation modes; first_wins keeps the original by our design.
      {StrategyName::kMaxThroughput, true, true, true},
      {StrategyName::kMinLatency, true, true, true},
      {StrategyName::kMaxThroughput, false, true, false},
      {StrategyName::kMinLatency, false, true, false},
      {StrategyName::kMaxThroughput, true, false, false},
      {StrategyName::kLatencyBudget, true, true, false},
      {StrategyName::kLatencyBudget, false, true, false},
      {StrategyName::kFirstWins, true, true, true},
      {StrategyName::kFirstWins, false, true, false},
  };
  const std::vector<Trial> trials = {
      test_failure("a", Stage::kConvert, Code::kUnsupported, "no operator"), test_wrong("b", 900)};
  for (const Case& c : cases) {
    CAPTURE(to_string(c.name));
    CAPTURE(c.validation);
    StrategyOptions options = within_budget(1000);
    options.name = c.name;
    options.performance_validation = c.validation;
    const auto choice =
        choose(options, trials, c.baseline ? std::optional(original()) : std::nullopt);
    if (c.falls_back) {
      CHECK(label_of(choice, trials) == "original");
      continue;
    }
    REQUIRE_FALSE(choice);
    CHECK(choice.error().code == Code::kUnsupported);
    CHECK(says(choice.error().message, "a: convert failed: no operator"));
    CHECK(says(choice.error().message, "b: output 'y' off by 0.5"));
  }
}

TEST_CASE("Baseline: one that could not be measured opens the gate") {
  Trial broken = test_failure("eager", Stage::kMeasure, Code::kTimedOut, "too slow");
  for (const StrategyName name : {StrategyName::kOneBackend, StrategyName::kFirstWins,
                                  StrategyName::kMaxThroughput, StrategyName::kMinLatency}) {
    CAPTURE(to_string(name));
    const std::vector<Trial> trials = {test_speed("a", 50, 0, kCannotTell)};
    const auto choice = choose(with(name), trials, broken);
    CHECK(label_of(choice, trials) == "a");
    CHECK_FALSE(choice->speedup);
    CHECK(says(choice->why, "the original was not measured"));
  }
}

TEST_CASE("MaxThroughput: a speed-up without an interval is told without one") {
  std::vector<Trial> trials = {test_speed("a", 50, 100, kCannotTell)};
  trials[0].points[0].speedup = Interval{.estimate = 0.5, .low = 0, .high = INFINITY};
  const auto choice = choose(with(StrategyName::kMaxThroughput), trials, original());
  REQUIRE(choice);
  CHECK(says(choice->why, "a, is 0.5 times as fast as the original at batch size 1"));
}

TEST_CASE("Measurements: none, NaN and infinity never win and never stand in the way") {
  Trial unmeasured = test_speed("a", 900, 100, kFaster);
  unmeasured.points.clear();
  Trial nan = test_speed("b", 900, 100, kFaster);
  nan.points[0].throughput = std::nan("");
  Trial infinite = test_speed("c", 900, 100, kFaster);
  infinite.points[0].throughput = INFINITY;
  Trial zero = test_speed("d", 900, 100, kFaster);
  zero.points[0].latency_ms.estimate = 0;
  Trial unproved = test_speed("e", 900, 100, kFaster);
  unproved.points[0].speedup->estimate = std::nan("");
  unproved.points[0].verdict = kCannotTell;
  Trial dropped = test_speed("f", 900, 100, kFaster);
  dropped.status = TrialStatus::kDropped;
  const std::vector<Trial> bad = {unmeasured, nan, infinite, zero, unproved, dropped};
  std::vector<Trial> trials = bad;
  trials.push_back(test_speed("good", 120, 100, kFaster));
  for (const StrategyName name :
       {StrategyName::kOneBackend, StrategyName::kFirstWins, StrategyName::kMaxThroughput,
        StrategyName::kMinLatency, StrategyName::kLatencyBudget}) {
    CAPTURE(to_string(name));
    StrategyOptions options = within_budget(1000);
    options.name = name;
    CHECK(label_of(choose(options, trials, original()), trials) == "good");
  }
  CHECK(label_of(choose(with(StrategyName::kMaxThroughput), bad, original()), bad) == "original");
  CHECK(label_of(choose(with(StrategyName::kOneBackend), bad, original()), bad) == "original");
}

TEST_CASE("Trials: none at all leaves the original, or says that nothing was tried") {
  CHECK(label_of(choose(with(StrategyName::kMaxThroughput), {}, original()), {}) == "original");
  const auto choice = choose(with(StrategyName::kMaxThroughput), {}, std::nullopt);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().message == "no backend was tried");
}

}  // namespace
}  // namespace hasten
