// SPDX-License-Identifier: Apache-2.0
#include "strategy/standing.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace hasten {
namespace {

bool is_gate(StrategyName name) {
  return name == StrategyName::kOneBackend || name == StrategyName::kFirstWins;
}

// An interval that was filled in: a point made by hand may carry the estimate alone.
bool has_bounds(const Interval& interval) {
  return std::isfinite(interval.high) && interval.low > 0 && interval.low <= interval.estimate &&
         interval.estimate <= interval.high;
}

double lowest_throughput(const Point& p) {
  return has_bounds(p.latency_ms) ? p.throughput * p.latency_ms.estimate / p.latency_ms.high
                                  : p.throughput;
}

double highest_throughput(const Point& p) {
  return has_bounds(p.latency_ms) ? p.throughput * p.latency_ms.estimate / p.latency_ms.low
                                  : p.throughput;
}

const Point* measured_at(const Trial& trial, int64_t batch_size) {
  const Point* point = trial.at(batch_size);
  return point && point->measured() ? point : nullptr;
}

// The largest size at which there is something to compare; any size without a baseline.
const Point* gate_point(const Trial& trial, const Trial* baseline) {
  const Point* found = nullptr;
  for (const Point& point : trial.points) {
    if (!point.measured() || (found && point.batch_size <= found->batch_size)) continue;
    if (baseline && !speedup_over(baseline, point)) continue;
    found = &point;
  }
  return found;
}

const Point* best_throughput(const Trial& trial, std::optional<double> budget_ms) {
  const Point* best = nullptr;
  for (const Point& point : trial.points) {
    if (!point.measured() || (budget_ms && point.latency_ms.estimate > *budget_ms)) continue;
    // Equal throughput at a smaller batch answers sooner.
    const bool better =
        !best || point.throughput > best->throughput ||
        (point.throughput == best->throughput && point.batch_size < best->batch_size);
    if (better) best = &point;
  }
  return best;
}

}  // namespace

bool usable(const Trial& trial) {
  return trial.status == TrialStatus::kOk && (!trial.check || trial.check->passed) &&
         std::any_of(trial.points.begin(), trial.points.end(),
                     [](const Point& p) { return p.measured(); });
}

const Trial* measured_or_null(const std::optional<Trial>& baseline) {
  return baseline && usable(*baseline) ? &*baseline : nullptr;
}

const Point* judged_point(const StrategyOptions& options, const Trial& trial, const Trial* baseline,
                          int64_t latency_size) {
  switch (options.name) {
    case StrategyName::kOneBackend:
    case StrategyName::kFirstWins:
      return gate_point(trial, baseline);
    case StrategyName::kMinLatency:
      return measured_at(trial, latency_size);
    case StrategyName::kLatencyBudget:
      return best_throughput(trial, options.latency_budget_ms);
    case StrategyName::kMaxThroughput:
      break;
  }
  return best_throughput(trial, std::nullopt);
}

double score(const StrategyOptions& options, const Point& point) {
  return options.name == StrategyName::kMinLatency ? 1 / point.latency_ms.estimate
                                                   : point.throughput;
}

int64_t latency_size(std::span<const Trial> trials) {
  std::optional<int64_t> smallest;
  for (const Trial& trial : trials) {
    if (!usable(trial)) continue;
    for (const Point& point : trial.points) {
      if (!point.measured()) continue;
      if (point.batch_size == 1) return 1;
      smallest = std::min(smallest.value_or(point.batch_size), point.batch_size);
    }
  }
  return smallest.value_or(1);
}

std::optional<Interval> speedup_over(const Trial* baseline, const Point& point) {
  if (point.speedup) {
    if (std::isfinite(point.speedup->estimate)) return point.speedup;
    return std::nullopt;
  }
  const Point* original = baseline ? measured_at(*baseline, point.batch_size) : nullptr;
  if (!original) return std::nullopt;
  const double ratio = point.throughput / original->throughput;
  return Interval{.estimate = ratio,
                  .low = lowest_throughput(point) / highest_throughput(*original),
                  .high = highest_throughput(point) / lowest_throughput(*original)};
}

bool displaces(const StrategyOptions& options, const Point& point, const Trial& baseline,
               const Point& baseline_point) {
  if (is_gate(options.name)) {
    const auto speedup = speedup_over(&baseline, point);
    // 1 + 0.07 and 107 / 100 differ in the last bit; the threshold itself passes.
    return speedup && speedup->estimate >= 1 + options.min_speedup - 1e-12;
  }
  if (!(score(options, point) > score(options, baseline_point))) return false;
  // Where both ran at this size, the rounds of the race were paired and have a verdict.
  if (measured_at(baseline, point.batch_size) && point.verdict != Verdict::kFaster) return false;
  // The original may do best at another size; those figures are not paired, so only
  // intervals that do not touch tell them apart.
  return point.batch_size == baseline_point.batch_size ||
         lowest_throughput(point) > highest_throughput(baseline_point);
}

std::string reason_against(const Trial& trial) {
  if (trial.failure) {
    return format("{} failed: {}", to_string(trial.failure->stage), trial.failure->error.message);
  }
  if (trial.check && !trial.check->passed) {
    return trial.check->message.empty() ? "its results differ from the original's"
                                        : trial.check->message;
  }
  if (!trial.note.empty()) return trial.note;
  if (usable(trial)) return "no figure that can be compared";
  return trial.status == TrialStatus::kOk || trial.status == TrialStatus::kDropped
             ? "not measured"
             : std::string(to_string(trial.status));
}

std::string all_reasons(std::span<const Trial> trials) {
  std::vector<std::string> reasons;
  for (const Trial& trial : trials) {
    reasons.push_back(trial.candidate.label() + ": " + reason_against(trial));
  }
  return join(reasons, "; ");
}

}  // namespace hasten
