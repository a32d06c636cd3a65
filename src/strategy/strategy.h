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
  std::optional<double> latency_budget_ms;   // kLatencyBudget: set and above 0.
  bool performance_validation = true;
};
std::string_view to_string(StrategyName name);  // "max-throughput"
std::optional<StrategyName> strategy_from_string(std::string_view text);
Json to_json(const StrategyOptions& options);

// The original model took part as `baseline`; it has no check. None: it could not be measured.
struct Choice {
  std::optional<size_t> trial;       // Index into `trials`; none: the original model.
  int64_t selected_batch_size = 1;
  double throughput = 0;             // Of the chosen one, at that size.
  double latency_ms = 0;
  std::optional<Interval> speedup;
  bool fell_back = false;            // The original model was chosen for want of a better one.
  bool passed = false;               // The gate of the strategy.
  std::string why;                   // One sentence for the report.
  std::vector<size_t> runners_up;    // Usable trials, best first, without the chosen one.
};

// Fails as the strategy fails: kUnsupported when nothing usable is left and the
// strategy has no fall-back (the error names every candidate's reason or, for a
// latency budget, the nearest).
Result<Choice> choose(const StrategyOptions& options, std::span<const Trial> trials,
                      const std::optional<Trial>& baseline);

// first_wins and one_backend need no later candidate once one has passed.
bool decided(const StrategyOptions& options, std::span<const Trial> trials_so_far,
             const std::optional<Trial>& baseline);

// Which batch sizes to measure, given the sizes the user named (may be empty).
std::vector<int64_t> sizes_to_measure(const StrategyOptions& options,
                                      const std::vector<int64_t>& given, bool has_batch_axis);

// The sweep over powers of two ends when throughput gained less than `gain` over the
// best so far for more than `backoff` sizes in a row (reference rule: 0.05 and 2).
class ThroughputSaturated {
 public:
  explicit ThroughputSaturated(double gain = 0.05, size_t backoff = 2);
  bool done(double throughput);      // After each size.

 private:
  double gain_, best_ = 0;
  size_t backoff_, flat_ = 0;
  bool first_ = true;
};

}  // namespace hasten
