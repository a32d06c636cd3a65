// SPDX-License-Identifier: Apache-2.0
// Workers as arms of a race, and what a race says about them.
#pragma once

#include <hasten/result.h>

#include "backend/worker.h"
#include "base/json.h"
#include "measure/race.h"
#include "record/trial.h"
#include "tune/slots.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hasten {

// A turn is long against the cost of handing it over, short against drift.
constexpr std::chrono::nanoseconds kTurnLength = std::chrono::milliseconds(30);
// Of intervals and verdicts.
constexpr double kRaceConfidence = 0.99;
// Ratios this close to 1 are the same.
constexpr double kIndifference = 0.01;

// An arm that left the race early at less than this part of the original's speed is slower:
// the race drops arms more than twice slower than the best (RaceOptions::hopeless_ratio).
constexpr double kFarBehind = 0.5;

struct ArmOptions {
  bool fresh_inputs = false;                                  // The model writes into its inputs.
  bool keep = false;                                          // Never dropped from the race.
  std::chrono::nanoseconds timeout{std::chrono::minutes(1)};  // Of one turn.
};

// Takes its turns in `worker`, which stands still between them. The worker must
// outlive the arm and have its inputs in kMeasuredSlot.
Arm arm_of(Worker& worker, std::string label, const ArmOptions& options);

// Turns that nobody counts, until one is not much faster than the one before.
// `before` is how long a call with the same inputs took just now, if one was made.
Status warm_up(const Arm& arm, std::optional<std::chrono::nanoseconds> before = {});

// The figures of an arm at a batch size, compared with `baseline` round by round (null,
// or the arm itself: no comparison). None: it never finished a turn. A speed-up is in doubt
// where the baseline's median call took kHindered times its fastest, which `fastest_ns` knows
// from further races: other programs kept it from running, and anything beside it looks fast.
constexpr double kHindered = 5;
std::optional<Point> point_of(const ArmSamples& arm, const ArmSamples* baseline,
                              int64_t batch_size, std::optional<int64_t> fastest_ns = {});

// "12 rounds, enough to tell; 3 more were left out, other programs disturbed them"
std::string describe(const RaceResult& race);

// Every call of every round, for the journal.
Json samples_json(const RaceResult& race, int64_t batch_size, const std::string& stage);

}  // namespace hasten
