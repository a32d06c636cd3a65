// SPDX-License-Identifier: Apache-2.0
#include "measure/race.h"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <random>

#include "base/fake_clock.h"
#include "measure/summary.h"
#include "stats/stats.h"

namespace hasten {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A scripted arm: each turn is one call of the given time, and the clock moves by the turn.
struct Stage {
  FakeClock clock;
  std::vector<std::string> turns;  // Labels in the order they had their turns.

  Arm arm(std::string label, std::function<Result<std::vector<int64_t>>()> script,
          bool keep = false) {
    return {.label = label,
            .turn =
                [this, label, script](nanoseconds budget) {
                  turns.push_back(label);
                  clock.advance(budget);
                  return script();
                },
            .keep = keep};
  }
  Arm steady(std::string label, int64_t time, bool keep = false) {
    return arm(
        std::move(label), [time] { return std::vector<int64_t>{time}; }, keep);
  }
};

double uniform(std::mt19937_64& engine) {  // (0, 1)
  return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
}

double normal(std::mt19937_64& engine) {  // Box and Muller.
  const double radius = std::sqrt(-2 * std::log(uniform(engine)));
  return radius * std::cos(2 * std::acos(-1.0) * uniform(engine));
}

// A round of calls of about `time` with `noise` between rounds, drifting by `drift` a turn; of
// the turns, the share `spoiled` takes up to a thousand times as long.
struct Noisy {
  double time, noise, drift = 0;
  std::mt19937_64 engine;
  double spoiled = 0;
  int turns = 0;

  std::vector<int64_t> operator()() {
    const double far = uniform(engine) < spoiled ? 7 * uniform(engine) : 0;
    const double at = time * std::exp(noise * normal(engine) + far + drift * turns++);
    return std::vector<int64_t>(3, static_cast<int64_t>(at));
  }
};

Arm noisy_arm(Stage& stage, std::string label, Noisy noisy, bool keep = false) {
  return stage.arm(
      std::move(label), [noisy]() mutable { return noisy(); }, keep);
}

TEST_CASE("run_race: every live arm has one turn a round, in an order that the seed decides") {
  const auto order = [](uint64_t seed) {
    Stage stage;
    const std::vector<Arm> arms{stage.steady("a", 100), stage.steady("b", 100),
                                stage.steady("c", 100)};
    const RaceResult race =
        run_race(arms, {.min_rounds = 6, .max_rounds = 6, .seed = seed}, stage.clock);
    CHECK(race.rounds == 6);
    for (const ArmSamples& arm : race.arms) {
      CHECK(arm.rounds.size() == 6);
      CHECK(arm.round_numbers == std::vector<size_t>{0, 1, 2, 3, 4, 5});
    }
    REQUIRE(stage.turns.size() == 18);
    std::map<std::string, int> first;
    for (size_t i = 0; i < 18; i += 3) ++first[stage.turns[i]];
    CHECK(first.size() > 1);
    return stage.turns;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("run_race: results stand in the order given") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("slow", 150), stage.steady("fast", 100)};
  const RaceResult race = run_race(arms, {}, stage.clock);
  CHECK(race.arms[0].label == "slow");
  CHECK(race.arms[0].rounds[0] == std::vector<int64_t>{150});
  CHECK(race.arms[1].label == "fast");
}

TEST_CASE("run_race: stops at the least number of rounds when nothing is in doubt") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("base", 100, true), stage.steady("same", 100),
                              stage.steady("fast", 60)};
  const RaceResult race = run_race(arms, {.min_rounds = 9}, stage.clock);
  CHECK(race.reason == StopReason::kConverged);
  CHECK(race.rounds == 9);
}

TEST_CASE("run_race: goes on until there are rounds enough for the confidence") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("base", 100, true), stage.steady("fast", 60)};
  CHECK(run_race(arms, {.min_rounds = 3}, stage.clock).rounds == 8);
  CHECK(run_race(arms, {.min_rounds = 3, .confidence = 0.95}, stage.clock).rounds == 6);
  const RaceResult few = run_race(arms, {.min_rounds = 3, .max_rounds = 7}, stage.clock);
  CHECK(few.reason == StopReason::kRoundsSpent);
  const Estimate ratio = *paired_speedup(few.arms[1], few.arms[0], 0.99);
  CHECK(compare_to_one(ratio, 0.01) == Comparison::kCannotTell);
}

TEST_CASE("run_race: an arm that fails leaves with its error, the others go on") {
  Stage stage;
  int turns = 0;
  const std::vector<Arm> arms{
      stage.steady("base", 100, true),
      stage.arm("bad",
                [&]() -> Result<std::vector<int64_t>> {
                  if (++turns == 3) return Error{Code::kCrashed, "killed by SIGSEGV"};
                  return std::vector<int64_t>{90};
                }),
      stage.arm("empty", []() -> Result<std::vector<int64_t>> { return std::vector<int64_t>{}; })};
  const RaceResult race = run_race(arms, {.min_rounds = 5}, stage.clock);
  CHECK(race.rounds == 5);
  CHECK_FALSE(race.arms[0].failure);
  REQUIRE(race.arms[1].failure);
  CHECK(race.arms[1].failure->code == Code::kCrashed);
  CHECK(race.arms[1].rounds.size() == 2);
  CHECK_FALSE(race.arms[1].dropped);
  REQUIRE(race.arms[2].failure);
  CHECK(race.arms[2].failure->message == "empty: a turn without a single call");
}

TEST_CASE("run_race: ends when nobody is left") {
  Stage stage;
  const auto fails = []() -> Result<std::vector<int64_t>> { return Error{Code::kRunFailed, "no"}; };
  const std::vector<Arm> arms{stage.arm("a", fails, true), stage.arm("b", fails)};
  const RaceResult race = run_race(arms, {}, stage.clock);
  CHECK(race.reason == StopReason::kNobodyLeft);
  CHECK(stage.turns.size() == 2);
  CHECK(run_race({}, {}, stage.clock).reason == StopReason::kNobodyLeft);
}

TEST_CASE("run_race: hopeless arms leave after two rounds, kept ones never") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("base", 900, true), stage.steady("fast", 100),
                              stage.steady("nearly", 199), stage.steady("hopeless", 201)};
  const RaceResult race = run_race(arms, {}, stage.clock);
  CHECK_FALSE(race.arms[0].dropped);
  CHECK_FALSE(race.arms[2].dropped);
  CHECK(race.arms[3].dropped);
  CHECK(race.arms[3].rounds.size() == 2);
  CHECK(race.arms[0].rounds.size() == 8);
}

TEST_CASE("run_race: where the kept arm is no competitor, only the others send each other off") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("base", 100, true), stage.steady("fast", 300),
                              stage.steady("nearly", 500), stage.steady("hopeless", 700)};
  RaceOptions options;
  options.kept_arms_lead = false;
  const RaceResult race = run_race(arms, options, stage.clock);
  CHECK_FALSE(race.arms[1].dropped);
  CHECK_FALSE(race.arms[2].dropped);
  CHECK(race.arms[3].dropped);
  CHECK_FALSE(run_race(std::span(arms).first(1), options, stage.clock).arms[0].dropped);
}

TEST_CASE("run_race: one cold first turn does not drop an arm") {
  Stage stage;
  int turns = 0;
  const std::vector<Arm> arms{stage.steady("base", 100, true), stage.arm("warms up", [&] {
                                return std::vector<int64_t>{++turns == 1 ? 250 : 50};
                              })};
  CHECK_FALSE(run_race(arms, {}, stage.clock).arms[1].dropped);
}

TEST_CASE("run_race: never more rounds than allowed") {
  Stage stage;
  std::vector<Arm> arms{noisy_arm(stage, "base", {1e6, 0.5, 0, std::mt19937_64(1)}, true),
                        noisy_arm(stage, "same", {1e6, 0.5, 0, std::mt19937_64(2)})};
  const RaceResult race =
      run_race(arms, {.min_rounds = 3, .max_rounds = 7, .hopeless_ratio = 1e9}, stage.clock);
  CHECK(race.reason == StopReason::kRoundsSpent);
  CHECK(race.rounds == 7);
}

TEST_CASE("run_race: time is looked at between turns, but a first round is finished") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("a", 100, true), stage.steady("b", 100, true)};
  RaceOptions options{.turn = milliseconds(10), .max_time = milliseconds(45)};
  const RaceResult race = run_race(arms, options, stage.clock);
  CHECK(race.reason == StopReason::kTimeSpent);
  CHECK(race.rounds == 2);
  CHECK(stage.turns.size() == 5);
  stage.turns.clear();
  options.max_time = milliseconds(5);
  CHECK(run_race(arms, options, stage.clock).rounds == 1);
  CHECK(stage.turns.size() == 2);
  options.max_time = milliseconds(0);
  CHECK(run_race(arms, options, stage.clock).rounds == 0);
  CHECK(stage.turns.size() == 2);
}

TEST_CASE("run_race: enough time ends a race that has its least rounds, and no other") {
  // Each round of two turns takes 20 ms; nobody can tell these two apart.
  const auto race = [](size_t min_rounds, milliseconds enough) {
    Stage stage;
    const std::vector<Arm> arms{
        noisy_arm(stage, "base", {1e6, 0.5, 0, std::mt19937_64(1)}, true),
        noisy_arm(stage, "same", {1e6, 0.5, 0, std::mt19937_64(2)}, true)};
    return run_race(arms,
                    {.turn = milliseconds(10), .min_rounds = min_rounds, .enough_time = enough},
                    stage.clock);
  };
  const RaceResult slow = race(8, milliseconds(40));
  CHECK(slow.reason == StopReason::kTimeSpent);
  CHECK(slow.rounds == 8);
  const RaceResult quicker = race(8, milliseconds(230));
  CHECK(quicker.reason == StopReason::kTimeSpent);
  CHECK(quicker.rounds == 12);  // The one under way at 230 ms is finished.
  for (const ArmSamples& arm : quicker.arms) CHECK(arm.rounds.size() == 12);
  CHECK(race(8, milliseconds(5000)).reason == StopReason::kRoundsSpent);
}

TEST_CASE("run_race: cancelling ends it before the next turn and blames nobody") {
  Stage stage;
  std::stop_source stop;
  const std::vector<Arm> arms{stage.steady("a", 100),
                              stage.arm("b", [&]() -> Result<std::vector<int64_t>> {
                                if (stage.turns.size() < 5) return std::vector<int64_t>{100};
                                stop.request_stop();
                                return Error{Code::kCancelled, "stopped"};
                              })};
  const RaceResult race = run_race(arms, {.stop = stop.get_token()}, stage.clock);
  CHECK(race.reason == StopReason::kCancelled);
  CHECK_FALSE(race.arms[1].failure);
  CHECK(race.arms[1].rounds.size() >= 2);
  CHECK(stage.turns.back() == "b");
}

TEST_CASE("run_race: after each round the samples so far are shown") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("a", 100)};
  std::vector<size_t> seen;
  run_race(arms, {.min_rounds = 3}, stage.clock, [&](const RaceResult& so_far) {
    seen.push_back(so_far.rounds);
    CHECK(so_far.arms[0].rounds.size() == so_far.rounds);
  });
  CHECK(seen == std::vector<size_t>{1, 2, 3});
}

// A machine on which others are busy in the rounds that `busy` says, counted from 0, played
// again or not.
ActivityProbe others_in(std::function<bool(int round)> busy) {
  ActivityReading now{.machine = {.busy_s = 100, .idle_s = 100, .processors = 2}};
  return [busy = std::move(busy), now, round = -1]() mutable {
    if (round >= 0) now.machine.busy_s += busy(round) ? 1 : 0;
    now.machine.idle_s += 1;
    ++round;
    return now;
  };
}

TEST_CASE("run_race: a round that others spoiled is played again and leaves no trace") {
  Stage stage;
  // While somebody else is there, everything takes ten times as long.
  const auto time = [&](int64_t quiet) {
    return [&stage, quiet]() -> Result<std::vector<int64_t>> {
      const bool busy = (stage.turns.size() - 1) / 2 % 3 == 1;
      return std::vector<int64_t>{busy ? 10 * quiet : quiet};
    };
  };
  const std::vector<Arm> arms{stage.arm("base", time(100), true), stage.arm("fast", time(60))};
  std::vector<size_t> seen;
  const RaceResult race =
      run_race(arms, {.min_rounds = 10, .max_rounds = 20, .activity = others_in([](int round) {
                                                            return round % 3 == 1;
                                                          })},
               stage.clock, [&](const RaceResult& so_far) { seen.push_back(so_far.rounds); });
  CHECK(race.reason == StopReason::kConverged);
  CHECK(race.rounds == 10);
  CHECK(seen == std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(race.discarded == 5);
  CHECK(stage.turns.size() == 2 * 15);
  for (const ArmSamples& arm : race.arms) {
    CHECK(arm.discarded == 5);
    CHECK(arm.round_numbers == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(arm.rounds == std::vector(10, arm.rounds.front()));
  }
}

TEST_CASE("run_race: on a machine that is always busy half the rounds more are played") {
  Stage stage;
  const std::vector<Arm> arms{noisy_arm(stage, "base", {1e6, 0.5, 0, std::mt19937_64(1)}, true),
                              noisy_arm(stage, "same", {1e6, 0.5, 0, std::mt19937_64(2)}, true)};
  const RaceResult race = run_race(
      arms, {.max_rounds = 20, .activity = others_in([](int) { return true; })}, stage.clock);
  CHECK(race.reason == StopReason::kRoundsSpent);
  CHECK(race.rounds == 20);
  CHECK(race.discarded == 10);
  CHECK(race.arms[0].rounds.size() == 20);
  CHECK(stage.turns.size() == 2 * 30);
}

TEST_CASE("run_race: a spoiled round is better than none when no time is left") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("a", 100), stage.steady("b", 100)};
  const RaceResult race =
      run_race(arms, {.max_time = milliseconds(1), .activity = others_in([](int) { return true; })},
               stage.clock);
  CHECK(race.reason == StopReason::kTimeSpent);
  CHECK(race.rounds == 1);
  CHECK(race.arms[1].rounds.size() == 1);
  CHECK(race.discarded == 0);
}

TEST_CASE("run_race: rounds that others spoil are not played again after enough time") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("a", 100), stage.steady("b", 100)};
  const RaceResult race = run_race(arms,
                                   {.turn = milliseconds(10),
                                    .min_rounds = 8,
                                    .enough_time = milliseconds(40),
                                    .activity = others_in([](int) { return true; })},
                                   stage.clock);
  CHECK(race.rounds == 8);
  CHECK(race.discarded == 1);  // The second ended at 40 ms.
}

TEST_CASE("run_race: who fails in a spoiled round has failed") {
  Stage stage;
  const std::vector<Arm> arms{stage.steady("base", 100, true),
                              stage.arm("bad", []() -> Result<std::vector<int64_t>> {
                                return Error{Code::kCrashed, "x"};
                              })};
  const RaceResult race =
      run_race(arms, {.activity = others_in([](int round) { return round == 0; })}, stage.clock);
  CHECK(race.arms[1].failure);
  CHECK(race.arms[1].discarded == 0);  // It had no turn to discard.
  CHECK(race.arms[0].discarded == 1);
  CHECK(race.arms[0].rounds.size() == 8);
}

struct Tally {
  int faster = 0, slower = 0, same = 0, cannot_tell = 0;
  size_t rounds = 0;
};

// Many races of one arm against a baseline, judged as a report judges them.
Tally tally(int races, double ratio, double noise, double drift, double spoiled = 0) {
  Tally tally;
  for (int i = 0; i < races; ++i) {
    Stage stage;
    const auto seed = static_cast<uint64_t>(i);
    const std::vector<Arm> arms{
        noisy_arm(stage, "base", {1e6, noise, drift, std::mt19937_64(2 * seed + 1000), spoiled},
                  true),
        noisy_arm(stage, "arm",
                  {1e6 * ratio, noise, drift, std::mt19937_64(2 * seed + 1001), spoiled})};
    const RaceResult race = run_race(arms, {.hopeless_ratio = 1e9, .seed = seed}, stage.clock);
    tally.rounds += race.rounds;
    switch (compare_to_one(*paired_speedup(race.arms[1], race.arms[0], 0.99), 0.01)) {
      case Comparison::kAbove:
        ++tally.faster;
        break;
      case Comparison::kBelow:
        ++tally.slower;
        break;
      case Comparison::kSame:
        ++tally.same;
        break;
      case Comparison::kCannotTell:
        ++tally.cannot_tell;
        break;
    }
  }
  return tally;
}

TEST_CASE("run_race: two identical arms are not told apart, however noisy") {
  for (const double noise : {0.005, 0.03}) {
    CAPTURE(noise);
    const Tally t = tally(500, 1, noise, 0);
    CHECK(t.faster + t.slower <= 10);  // 2 %.
  }
}

TEST_CASE("run_race: turns that another program spoils tell nobody apart, and hide no gain") {
  for (const double noise : {0.005, 0.03}) {
    CAPTURE(noise);
    const Tally same = tally(500, 1, noise, 0, 0.1);
    CHECK(same.faster + same.slower <= 10);
  }
  const Tally gain = tally(500, 0.8, 0.03, 0, 0.05);
  CHECK(gain.faster >= 490);
  CHECK(gain.slower == 0);
}

TEST_CASE("run_race: quiet identical arms are called the same, and soon") {
  const Tally t = tally(500, 1, 0.001, 0);
  CHECK(t.same == 500);
  CHECK(t.rounds == 500 * 8);
}

TEST_CASE("run_race: drift that all arms share changes no verdict") {
  const Tally still = tally(500, 1, 0.01, 0), drifting = tally(500, 1, 0.01, 0.02);
  CHECK(drifting.faster + drifting.slower <= 10);
  CHECK(drifting.same == still.same);
  CHECK(tally(100, 0.95, 0.01, 0.02).faster == 100);
}

TEST_CASE("run_race: five percent under three percent of noise are found") {
  const Tally t = tally(500, 0.95, 0.03, 0);
  CHECK(t.faster >= 490);
  CHECK(t.slower == 0);
  CHECK(t.rounds < 500 * 40);
}

}  // namespace
}  // namespace hasten
