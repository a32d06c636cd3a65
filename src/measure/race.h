// SPDX-License-Identifier: Apache-2.0
// Rounds of turns: in each round every live arm takes one turn, in random order,
// while nobody else runs. Arms are compared within a round, so drift cancels.
// Knows callables, no backend.
//
// A round that other programs spoiled (see noise.h) is played again: its samples are discarded
// whatever they are, so that no arm gains. At most max_rounds / 2 are, and none is when no time
// is left for another: on a machine that is always busy the interval has to tell.
//
// The race has converged when of every arm left the interval of its ratio to the
// reference (the first `keep` arm, else the leader) is narrower than the indifference on
// each side, or lies clear of 1 or around it. It looks at few points, of which min_rounds
// is the first, so that looking often does not find differences where there are none.
#pragma once

#include <hasten/result.h>

#include "base/clock.h"
#include "measure/noise.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

// One contestant: a candidate at one batch size.
struct Arm {
  std::string label;
  // Makes calls for about `budget` (at least one) and returns how long each took, in ns.
  std::function<Result<std::vector<int64_t>>(std::chrono::nanoseconds budget)> turn;
  bool keep = false;                  // Never dropped: the baseline.
};

struct ArmSamples {
  std::string label;
  std::vector<std::vector<int64_t>> rounds;  // Of each round it took part in: call times, ns.
  std::vector<size_t> round_numbers;         // Of those rounds: which one (for pairing).
  std::optional<Error> failure;
  bool dropped = false;               // Left before the end for being too slow.
  size_t discarded = 0;               // Rounds that others spoiled; not among the above.
};

enum class StopReason { kConverged, kRoundsSpent, kTimeSpent, kCancelled, kNobodyLeft };
std::string_view to_string(StopReason reason);

struct RaceOptions {
  std::chrono::nanoseconds turn = std::chrono::milliseconds(30);
  size_t min_rounds = 8, max_rounds = 40;
  // Looked at between turns. A first round that has begun is finished.
  std::optional<std::chrono::nanoseconds> max_time{};
  // After this long no round begins once min_rounds are complete, and none is discarded: what a
  // slow model's further rounds cost is better spent on another batch size.
  std::optional<std::chrono::nanoseconds> enough_time{};
  double indifference = 0.01;         // Ratios closer to 1 than this are the same.
  double confidence = 0.99;
  // An arm more than this times slower than the best after two rounds is dropped.
  double hopeless_ratio = 2.0;
  bool kept_arms_lead = true;         // False: being far behind a kept arm drops nobody.
  ActivityProbe activity{};           // Asked around each round; none: no round is discarded.
  uint64_t seed = 0;
  std::stop_token stop{};
};

struct RaceResult {
  std::vector<ArmSamples> arms;       // In the order given.
  StopReason reason = StopReason::kRoundsSpent;
  size_t rounds = 0;                  // Complete ones; the last one may have been cut short.
  size_t discarded = 0;               // Complete, but spoiled by others.
};

// `after_round` sees the samples so far; for the journal and the progress line.
RaceResult run_race(std::span<const Arm> arms, const RaceOptions& options, const Clock& clock,
                    const std::function<void(const RaceResult&)>& after_round = {});

}  // namespace hasten
