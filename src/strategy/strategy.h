// SPDX-License-Identifier: Apache-2.0
// Picks a trial. Pure: records in, choice out; no clock, file, thread or backend.
#pragma once

#include <hasten/result.h>
#include <hasten/tune.h>

#include "base/json.h"
#include "record/trial.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

struct StrategyOptions {
  StrategyName name = StrategyName::kMaxThroughput;
  double min_speedup = 0.01;
  std::optional<double> latency_budget_ms;  // kLatencyBudget: set and above 0.
  bool performance_validation = true;
};
std::string_view to_string(StrategyName name);  // "max-throughput"
std::optional<StrategyName> strategy_from_string(std::string_view text);
Json to_json(const StrategyOptions& options);

// The original model took part as `baseline`; it has no check. None: it could not be measured.
struct Choice {
  std::optional<size_t> trial;  // Index into `trials`; none: the original model.
  int64_t selected_batch_size = 1;
  double throughput = 0;  // Of the chosen one, at that size.
  double latency_ms = 0;
  std::optional<Interval>
      speedup;             // Over the original at that size; none: nothing to compare with.
  bool fell_back = false;  // The original model was chosen for want of a better one.
  // The chosen candidate met the strategy's condition against the original. False for the
  // original itself and where the original was not measured.
  bool passed = false;
  std::string doubt;               // About the speed-up, see Point.
  std::string why;                 // One sentence for the report.
  std::vector<size_t> runners_up;  // Usable trials, best first, without the chosen one.
};

// A trial is usable when it is kOk, its check passed and it was measured; no other one is
// ever chosen, and none keeps another from being chosen. Within 1 % two candidates tie, and
// the earlier one wins. A candidate takes the original's place only where the verdict says
// that it is faster (first_wins and one_backend: at 1 + min_speedup or more).
//
// Fails as the strategy fails: kUnsupported when nothing usable is left and the
// strategy has no fall-back (the error names every candidate's reason or, for a
// latency budget, the nearest); one_backend with the error of its candidate.
Result<Choice> choose(const StrategyOptions& options, std::span<const Trial> trials,
                      const std::optional<Trial>& baseline);

// The original, where the one that was chosen did not turn out faster and nobody is left.
// `baseline` was measured.
Choice keep_original(const StrategyOptions& options, std::span<const Trial> trials,
                     const Trial& baseline, std::string why);

// first_wins needs no later candidate once one has passed.
bool decided(const StrategyOptions& options, std::span<const Trial> trials_so_far,
             const std::optional<Trial>& baseline);

// Which batch sizes to measure, ascending, given the sizes the user named (may be empty:
// powers of two up to 64, and the caller stops by SweepIsFlat).
std::vector<int64_t> sizes_to_measure(const StrategyOptions& options,
                                      const std::vector<int64_t>& given, bool has_batch_axis);

// The sweep over powers of two ends when twice in a row throughput did not rise 5 % above the
// best of all smaller sizes. AITune lets a third such size go by, and compares with the last
// size that rose far enough instead of the best one: each size costs more than all before it
// together, so the third would cost more than the whole sweep until then.
class SweepIsFlat {
 public:
  bool done(double throughput);  // After each size.

 private:
  double best_ = 0;
  size_t flat_ = 0;
};

}  // namespace hasten
