// SPDX-License-Identifier: Apache-2.0
#include "tune/turns.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "measure/summary.h"
#include "stats/stats.h"

namespace hasten {
namespace {

using std::chrono::nanoseconds;

// Executors that specialise themselves recompile in their first calls; more turns than
// this and the model has no steady state that a user would see either.
constexpr int kMaxWarmUpTurns = 6;
// That is warm. What a call gains beyond it is within what the rounds of a race differ by, and
// a turn of a slow model is time that the race could have had.
constexpr double kWarm = 0.8;

Verdict to_verdict(Comparison speedup) {
  switch (speedup) {
    case Comparison::kAbove:
      return Verdict::kFaster;
    case Comparison::kBelow:
      return Verdict::kSlower;
    case Comparison::kSame:
      return Verdict::kSame;
    case Comparison::kCannotTell:
      break;
  }
  return Verdict::kCannotTell;
}

// As to_string(), for a person.
std::string_view words_for(StopReason reason) {
  switch (reason) {
    case StopReason::kConverged:
      return "enough to tell";
    case StopReason::kRoundsSpent:
      return "as many as there may be";
    case StopReason::kTimeSpent:
      return "as many as there was time for";
    case StopReason::kCancelled:
      return "then it was ended";
    case StopReason::kNobodyLeft:
      break;
  }
  return "then nobody was left";
}

std::string doubt_about(const ArmSamples& baseline, double median_ms,
                        std::optional<int64_t> fastest_ns) {
  int64_t fastest = fastest_ns.value_or(INT64_MAX);
  for (const std::vector<int64_t>& calls : baseline.rounds) {
    for (const int64_t ns : calls) fastest = std::min(fastest, ns);
  }
  const double fastest_ms = 1e-6 * static_cast<double>(std::max<int64_t>(1, fastest));
  if (median_ms < kHindered * fastest_ms) return "";
  return format(
      "half of the calls of {}, with which it is compared, took {:.3g} ms or more, and the fastest "
      "took {:.3g} ms: other programs seem to have kept it from running; close them and measure "
      "again, or use fewer --threads",
      baseline.label, median_ms, fastest_ms);
}

Interval to_interval(const Estimate& e) { return {e.value, e.low, e.high}; }

}  // namespace

Arm arm_of(Worker& worker, std::string label, const ArmOptions& options) {
  return {.label = std::move(label),
          .turn =
              [&worker, options](nanoseconds budget) {
                Result<std::vector<int64_t>> times =
                    worker.turn(kMeasuredSlot, budget, options.fresh_inputs, options.timeout);
                worker.stop();
                return times;
              },
          .keep = options.keep};
}

Status warm_up(const Arm& arm, std::optional<std::chrono::nanoseconds> before) {
  double last = before ? static_cast<double>(before->count()) : 0;
  for (int i = before ? 1 : 0; i < kMaxWarmUpTurns; ++i) {
    HASTEN_TRY(std::vector<int64_t> times, arm.turn(kTurnLength));
    std::sort(times.begin(), times.end());
    const auto middle = static_cast<double>(times[times.size() / 2]);
    if (i > 0 && middle > kWarm * last) return {};
    last = middle;
  }
  return {};
}

std::string describe(const RaceResult& race) {
  std::string text = format("{}, {}", counted(race.rounds, "round"), words_for(race.reason));
  if (race.discarded > 0) {
    text += format("; {} more {} left out, other programs disturbed {}", race.discarded,
                   race.discarded == 1 ? "was" : "were", race.discarded == 1 ? "it" : "them");
  }
  return text;
}

Json samples_json(const RaceResult& race, int64_t batch_size, const std::string& stage) {
  Json arms = Json::array();
  for (const ArmSamples& arm : race.arms) {
    Json rounds = Json::array();
    for (size_t r = 0; r < arm.rounds.size(); ++r) {
      Json calls = Json::array();
      for (const int64_t ns : arm.rounds[r]) calls.push(ns);
      rounds.push(Json::object(
          {{"round", static_cast<int64_t>(arm.round_numbers[r])}, {"calls_ns", std::move(calls)}}));
    }
    arms.push(Json::object({{"label", arm.label},
                            {"rounds", std::move(rounds)},
                            {"discarded", static_cast<int64_t>(arm.discarded)}}));
  }
  return Json::object({{"stage", stage},
                       {"batch_size", batch_size},
                       {"stopped", to_string(race.reason)},
                       {"arms", std::move(arms)}});
}

std::optional<Point> point_of(const ArmSamples& arm, const ArmSamples* baseline,
                              int64_t batch_size, std::optional<int64_t> fastest_ns) {
  const std::optional<Estimate> latency = latency_ms(arm, kRaceConfidence);
  if (!latency) return std::nullopt;
  Point point;
  point.batch_size = batch_size;
  point.latency_ms = to_interval(*latency);
  point.throughput = 1e3 * static_cast<double>(batch_size) / latency->value;
  point.rounds = arm.rounds.size();
  point.left_early = arm.dropped;
  for (const auto& round : arm.rounds) point.calls += round.size();
  if (!baseline) return point;
  if (&arm == baseline) {
    point.speedup = Interval{1, 1, 1};
    point.verdict = Verdict::kSame;
  } else if (const std::optional<Estimate> ratio =
                 paired_speedup(arm, *baseline, kRaceConfidence)) {
    point.speedup = to_interval(*ratio);
    point.verdict = to_verdict(compare_to_one(*ratio, kIndifference));
    // It had too few rounds for an interval because it was sent off for being this far behind.
    if (arm.dropped && ratio->value < kFarBehind) point.verdict = Verdict::kSlower;
    if (ratio->value > 1) {
      const double median_ms = latency_ms(*baseline, kRaceConfidence)->value;
      point.doubt = doubt_about(*baseline, median_ms, fastest_ns);
    }
  }
  return point;
}

}  // namespace hasten
