// SPDX-License-Identifier: Apache-2.0
// one_backend and first_wins: what passes the gate, and what happens when nothing does.
#include "strategy/strategy.h"

#include "strategy/test_trials.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

namespace hasten {
namespace {

TEST_CASE("Gate: one_backend and first_wins ask for 1 + min_speedup, the threshold included") {
  struct Case {
    double throughput, min_speedup;
    bool passes;
  };
  // speedup = candidate / baseline; passed = speedup >= 1 + min_speedup.
  const Case cases[] = {{101, 0.01, true},  {100.99, 0.01, false}, {102, 0.01, true},
                        {100, 0.01, false}, {90, 0.01, false},     {100, 0, true},
                        {107, 0.07, true},  {150, 0.5, true},      {149.9, 0.5, false},
                        {99.9, 0, false}};
  for (const StrategyName name : {StrategyName::kOneBackend, StrategyName::kFirstWins}) {
    for (const Case& c : cases) {
      CAPTURE(to_string(name));
      CAPTURE(c.throughput);
      StrategyOptions options = with(name);
      options.min_speedup = c.min_speedup;
      const std::vector<Trial> trials = {test_speed("a", c.throughput, 100, kCannotTell)};
      const auto choice = choose(options, trials, original());
      CHECK(label_of(choice, trials) == (c.passes ? "a" : "original"));
      REQUIRE(choice);
      CHECK(choice->passed == c.passes);
      CHECK(choice->fell_back == !c.passes);
    }
  }
}

TEST_CASE("Gate: the largest batch size decides, at which both were measured") {
  const Trial baseline = test_baseline({test_point(1, 10, 0, kSame), test_point(8, 40, 0, kSame)});
  const std::vector<Trial> fast_when_small = {
      test_trial("a", {test_point(1, 5, 10, kFaster), test_point(8, 50, 40, kSlower)})};
  CHECK(label_of(choose(with(StrategyName::kFirstWins), fast_when_small, baseline),
                 fast_when_small) == "original");
  const std::vector<Trial> fast_when_large = {
      test_trial("a", {test_point(1, 11, 10, kSlower), test_point(8, 20, 40, kFaster)})};
  const auto choice = choose(with(StrategyName::kFirstWins), fast_when_large, baseline);
  CHECK(label_of(choice, fast_when_large) == "a");
  CHECK(choice->selected_batch_size == 8);
  CHECK(choice->throughput == doctest::Approx(400));
  CHECK(choice->latency_ms == 20);
  CHECK(choice->speedup->estimate == 2);
  const std::vector<Trial> larger_than_the_original = {
      test_trial("a", {test_point(8, 20, 40, kFaster), test_point(16, 30, 0, kCannotTell)})};
  const auto at_eight = choose(with(StrategyName::kOneBackend), larger_than_the_original, baseline);
  CHECK(label_of(at_eight, larger_than_the_original) == "a");
  CHECK(at_eight->selected_batch_size == 8);
}

TEST_CASE("OneBackend: a build error is returned as it is") {
  const std::vector<Trial> trials = {
      test_failure("a", Stage::kBuild, Code::kUnavailable, "libnvinfer.so.10: cannot open")};
  for (bool validation : {true, false}) {
    StrategyOptions options = with(StrategyName::kOneBackend);
    options.performance_validation = validation;
    const auto choice = choose(options, trials, original());
    REQUIRE_FALSE(choice);
    CHECK(choice.error().code == Code::kUnavailable);
    CHECK(choice.error().message == "libnvinfer.so.10: cannot open");
    CHECK(choice.error().hint == "a hint");
  }
}

TEST_CASE("OneBackend: wrong values are an error, however fast they are") {
  const std::vector<Trial> trials = {test_wrong("a:threads=2", 500)};
  const auto choice = choose(with(StrategyName::kOneBackend), trials, original());
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == Code::kWrongResult);
  CHECK(choice.error().message == "a:threads=2: output 'y' off by 0.5");
}

TEST_CASE("OneBackend: of several configurations the best that passes is taken") {
  const std::vector<Trial> trials = {
      test_failure("a:x=1", Stage::kBuild, Code::kBuildFailed, "no"), test_wrong("a:x=2", 900),
      test_speed("a:x=3", 110, 100, kFaster), test_speed("a:x=4", 150, 100, kFaster),
      test_speed("a:x=5", 100, 100, kSame)};
  const auto choice = choose(with(StrategyName::kOneBackend), trials, original());
  CHECK(label_of(choice, trials) == "a:x=4");
  CHECK(choice->runners_up == std::vector<size_t>{2, 4});
  const std::vector<Trial> slow = {trials[0], trials[4]};
  CHECK(label_of(choose(with(StrategyName::kOneBackend), slow, original()), slow) == "original");
}

TEST_CASE("OneBackend: without performance validation a slower backend is returned") {
  StrategyOptions options = with(StrategyName::kOneBackend);
  options.performance_validation = false;
  const std::vector<Trial> trials = {test_speed("a", 50, 100, kSlower)};
  const auto choice = choose(options, trials, original());
  CHECK(label_of(choice, trials) == "a");
  CHECK_FALSE(choice->passed);
  CHECK_FALSE(choice->fell_back);
  CHECK(choice->speedup->estimate == 0.5);
}

TEST_CASE("FirstWins: the first in order that is correct and fast enough wins, not the fastest") {
  const std::vector<Trial> trials = {test_failure("a", Stage::kBuild, Code::kBuildFailed, "no"),
                                     test_wrong("b", 900), test_speed("c", 100.5, 100, kFaster),
                                     test_speed("d", 101, 100, kFaster),
                                     test_speed("e", 500, 100, kFaster)};
  const auto choice = choose(with(StrategyName::kFirstWins), trials, original());
  CHECK(label_of(choice, trials) == "d");
  CHECK(choice->passed);
  CHECK(choice->runners_up == std::vector<size_t>{4, 2});
}

TEST_CASE("FirstWins: none left gives the original model, and says why") {
  const std::vector<Trial> trials = {test_failure("a", Stage::kBuild, Code::kBuildFailed, "no g++"),
                                     test_wrong("b", 900)};
  const auto choice = choose(with(StrategyName::kFirstWins), trials, original());
  CHECK(label_of(choice, trials) == "original");
  CHECK(choice->fell_back);
  CHECK(choice->throughput == doctest::Approx(100));
  CHECK(says(choice->why, "a: build failed: no g++"));
  CHECK(says(choice->why, "b: output 'y' off by 0.5"));
  CHECK(label_of(choose(with(StrategyName::kFirstWins), trials, std::nullopt), trials) ==
        "original");
}

TEST_CASE("FirstWins: it is decided as soon as one has passed") {
  const StrategyOptions first = with(StrategyName::kFirstWins);
  const std::vector<Trial> slow = {test_speed("a", 100, 100, kSame)};
  const std::vector<Trial> fast = {slow[0], test_speed("b", 120, 100, kFaster)};
  CHECK_FALSE(decided(first, {}, original()));
  CHECK_FALSE(decided(first, slow, original()));
  CHECK(decided(first, fast, original()));
  CHECK(decided(first, slow, std::nullopt));  // No gate without a baseline.
  StrategyOptions ungated = first;
  ungated.performance_validation = false;
  CHECK(decided(ungated, slow, original()));
  // The best of all is only known at the end.
  for (const StrategyName name :
       {StrategyName::kOneBackend, StrategyName::kMaxThroughput, StrategyName::kMinLatency}) {
    CHECK_FALSE(decided(with(name), fast, original()));
  }
}

}  // namespace
}  // namespace hasten
