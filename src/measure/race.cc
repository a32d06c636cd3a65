// SPDX-License-Identifier: Apache-2.0
#include "measure/race.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "measure/summary.h"
#include "stats/stats.h"

namespace hasten {
namespace {

// A turn says little alone; the first round of an arm is often still a cold one.
constexpr size_t kRoundsBeforeDropping = 2;

// Whoever looks after every round sees a difference sooner or later. The race looks at
// few points only, each this many times later than the one before, and the looks share
// (Bonferroni) the part of the allowance for error that stopping early may cost. The
// verdict at the end costs all of it once more: two equal arms of whom the race can tell
// nothing are told apart in about 1.2 times the races that `confidence` allows.
constexpr double kLookSpacing = 1.5;
constexpr double kShareOfLooks = 0.5;

std::vector<size_t> looks(const RaceOptions& options) {
  std::vector<size_t> rounds;
  // With fewer rounds there is no interval.
  for (size_t at = std::max(options.min_rounds, samples_for_centre(options.confidence));
       at < options.max_rounds;
       at = std::max(at + 1, static_cast<size_t>(static_cast<double>(at) * kLookSpacing))) {
    rounds.push_back(at);
  }
  return rounds;
}

class Race {
 public:
  Race(std::span<const Arm> arms, const RaceOptions& options, const Clock& clock)
      : arms_(arms),
        options_(options),
        clock_(clock),
        start_(clock.now()),
        engine_(options.seed),
        looks_(looks(options)),
        medians_(arms.size()) {
    for (const Arm& arm : arms) {
      result_.arms.emplace_back();
      result_.arms.back().label = arm.label;
    }
  }

  RaceResult run(const std::function<void(const RaceResult&)>& after_round) {
    std::optional<StopReason> reason = before_round();
    if (options_.activity) activity_ = options_.activity();
    while (!reason) {
      reason = play_round();
      if (reason) break;
      if (round_is_spoiled()) {
        discard_round();
        reason = before_round();
        continue;
      }
      ++result_.rounds;
      if (result_.rounds >= kRoundsBeforeDropping) drop_hopeless();
      if (after_round) after_round(result_);
      reason = after_complete_round();
    }
    result_.reason = *reason;
    return std::move(result_);
  }

 private:
  bool live(size_t i) const { return !result_.arms[i].failure && !result_.arms[i].dropped; }

  std::vector<size_t> live_arms() const {
    std::vector<size_t> list;
    for (size_t i = 0; i < arms_.size(); ++i) {
      if (live(i)) list.push_back(i);
    }
    return list;
  }

  bool lasted(const std::optional<std::chrono::nanoseconds>& limit) const {
    return limit && clock_.now() - start_ >= *limit;
  }
  bool time_is_spent() const { return lasted(options_.max_time); }
  bool has_had_enough() const {
    return result_.rounds >= options_.min_rounds && lasted(options_.enough_time);
  }

  std::optional<StopReason> before_round() const {
    if (options_.stop.stop_requested()) return StopReason::kCancelled;
    if (live_arms().empty()) return StopReason::kNobodyLeft;
    if (result_.rounds >= options_.max_rounds) return StopReason::kRoundsSpent;
    if (time_is_spent() || has_had_enough()) return StopReason::kTimeSpent;
    return std::nullopt;
  }

  std::optional<StopReason> after_complete_round() const {
    if (options_.stop.stop_requested()) return StopReason::kCancelled;
    if (!live_arms().empty() && converged()) return StopReason::kConverged;
    return before_round();
  }

  // None: the round is complete.
  std::optional<StopReason> play_round() {
    std::vector<size_t> order = live_arms();
    // std::shuffle draws differently in each standard library.
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[engine_() % i]);
    for (const size_t arm : order) {
      if (options_.stop.stop_requested()) return StopReason::kCancelled;
      // Of a first round that has begun everybody gets a turn: without one an arm has no figure.
      if (result_.rounds > 0 && time_is_spent()) return StopReason::kTimeSpent;
      take_turn(arm);
    }
    return std::nullopt;
  }

  void take_turn(size_t i) {
    ArmSamples& samples = result_.arms[i];
    Result<std::vector<int64_t>> calls = arms_[i].turn(options_.turn);
    if (!calls) {
      // Who is cancelled fails; that is no fault of the arm.
      if (!options_.stop.stop_requested()) samples.failure = std::move(calls).error();
      return;
    }
    if (calls->empty()) {
      samples.failure = Error{Code::kInternal, samples.label + ": a turn without a single call"};
      return;
    }
    medians_[i].push_back(round_median(*calls));
    samples.rounds.push_back(*std::move(calls));
    samples.round_numbers.push_back(result_.rounds);
  }

  bool round_is_spoiled() {
    if (!options_.activity) return false;
    const ActivityReading before = std::exchange(activity_, options_.activity());
    if (result_.discarded >= options_.max_rounds / 2 || time_is_spent() ||
        lasted(options_.enough_time)) {
      return false;
    }
    return is_spoiled(before, activity_);
  }

  void discard_round() {
    ++result_.discarded;
    for (size_t i = 0; i < arms_.size(); ++i) {
      ArmSamples& samples = result_.arms[i];
      if (samples.rounds.empty() || samples.round_numbers.back() != result_.rounds) continue;
      samples.rounds.pop_back();
      samples.round_numbers.pop_back();
      medians_[i].pop_back();
      ++samples.discarded;
    }
  }

  // Of the live arms; there is at least one.
  size_t leader(bool with_kept) const {
    std::vector<size_t> list = live_arms();
    if (!with_kept) {
      std::erase_if(list, [&](size_t i) { return arms_[i].keep; });
      if (list.empty()) list = live_arms();
    }
    return *std::min_element(list.begin(), list.end(), [&](size_t a, size_t b) {
      return median(medians_[a]) < median(medians_[b]);
    });
  }

  void drop_hopeless() {
    if (live_arms().empty()) return;
    const double best = median(medians_[leader(options_.kept_arms_lead)]);
    for (const size_t i : live_arms()) {
      if (arms_[i].keep) continue;
      result_.arms[i].dropped = median(medians_[i]) > options_.hopeless_ratio * best;
    }
  }

  // Against whom the others are judged.
  size_t reference() const {
    for (const size_t i : live_arms()) {
      if (arms_[i].keep) return i;
    }
    return leader(true);
  }

  bool converged() const {
    // Nobody to compare with: the rounds are for the figures of the one.
    if (live_arms().size() == 1) return result_.rounds >= options_.min_rounds;
    // The last round ends the race anyway: no repeated look that would have to be paid for.
    const bool last = result_.rounds >= options_.max_rounds;
    if (!last && std::find(looks_.begin(), looks_.end(), result_.rounds) == looks_.end()) {
      return false;
    }
    const double share = last ? 1.0 : kShareOfLooks / static_cast<double>(looks_.size());
    const ArmSamples& against = result_.arms[reference()];
    const double zone = 1 + options_.indifference;
    for (const size_t i : live_arms()) {
      const ArmSamples& arm = result_.arms[i];
      if (&arm == &against) continue;
      const Estimate ratio = *paired_speedup(arm, against, options_.confidence);
      if (ratio.high <= zone * ratio.value && ratio.value <= zone * ratio.low) continue;
      const Estimate strict = *paired_speedup(arm, against, 1 - (1 - options_.confidence) * share);
      if (compare_to_one(strict, options_.indifference) == Comparison::kCannotTell) return false;
    }
    return true;
  }

  const std::span<const Arm> arms_;
  const RaceOptions& options_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  std::mt19937_64 engine_;
  const std::vector<size_t> looks_;
  std::vector<std::vector<double>> medians_;  // Of each arm: one a round it took part in.
  ActivityReading activity_;                  // At the end of the last round.
  RaceResult result_;
};

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kConverged:
      return "converged";
    case StopReason::kRoundsSpent:
      return "rounds_spent";
    case StopReason::kTimeSpent:
      return "time_spent";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kNobodyLeft:
      break;
  }
  return "nobody_left";
}

RaceResult run_race(std::span<const Arm> arms, const RaceOptions& options, const Clock& clock,
                    const std::function<void(const RaceResult&)>& after_round) {
  return Race(arms, options, clock).run(after_round);
}

}  // namespace hasten
