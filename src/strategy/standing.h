// SPDX-License-Identifier: Apache-2.0
// Where a trial stands: the point that a strategy looks at, and how it compares.
#pragma once

#include "record/trial.h"
#include "strategy/strategy.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

// Within this ratio two candidates tie and the earlier one wins: what is left of the noise
// after the race, which ends when all that are left lie within the same 1 %.
constexpr double kTie = 0.01;

struct Standing {
  size_t trial = 0;              // Index.
  const Point* point = nullptr;  // Into the trial; none: it has no figure that counts.
  double score = 0;              // Higher is better.
};

bool usable(const Trial& trial);
// The original model, if its figures can be used; borrowed.
const Trial* measured_or_null(const std::optional<Trial>& baseline);

// The point that the strategy judges a trial by; none if there is no such figure.
// `baseline` may be null. `latency_size` is the batch size that min_latency looks at.
const Point* judged_point(const StrategyOptions& options, const Trial& trial, const Trial* baseline,
                          int64_t latency_size);
double score(const StrategyOptions& options, const Point& point);
// 1 if anybody measured it, else the smallest size measured.
int64_t latency_size(std::span<const Trial> trials);

// Of a point over the original at the same batch size.
std::optional<Interval> speedup_over(const Trial* baseline, const Point& point);
// May this point take the place of the original's best one?
bool displaces(const StrategyOptions& options, const Point& point, const Trial& baseline,
               const Point& baseline_point);

// "build failed: no such operator": why a trial is not usable.
std::string reason_against(const Trial& trial);
// "a: reason; b: reason"
std::string all_reasons(std::span<const Trial> trials);

}  // namespace hasten
