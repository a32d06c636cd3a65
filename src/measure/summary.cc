// SPDX-License-Identifier: Apache-2.0
#include "measure/summary.h"

#include <algorithm>

namespace hasten {

double round_median(std::span<const int64_t> calls) {
  const std::vector<double> times(calls.begin(), calls.end());
  return std::max(1.0, median(times));
}

std::vector<double> round_medians(const ArmSamples& arm) {
  std::vector<double> medians;
  for (const std::vector<int64_t>& calls : arm.rounds) medians.push_back(round_median(calls));
  return medians;
}

std::optional<Estimate> latency_ms(const ArmSamples& arm, double confidence) {
  constexpr double kMsPerNs = 1e-6;
  std::vector<double> times;
  for (const std::vector<int64_t>& calls : arm.rounds) {
    times.insert(times.end(), calls.begin(), calls.end());
  }
  if (times.empty()) return std::nullopt;
  const Estimate of_calls = median_interval(times, confidence);
  const Estimate of_rounds = median_interval(round_medians(arm), confidence);
  return Estimate{of_calls.value * kMsPerNs, std::min(of_calls.low, of_rounds.low) * kMsPerNs,
                  std::max(of_calls.high, of_rounds.high) * kMsPerNs};
}

std::optional<Estimate> paired_speedup(const ArmSamples& arm, const ArmSamples& baseline,
                                       double confidence) {
  std::vector<double> own, theirs;
  size_t j = 0;
  for (size_t i = 0; i < arm.rounds.size(); ++i) {
    const size_t number = arm.round_numbers[i];  // Both lists are ascending.
    while (j < baseline.rounds.size() && baseline.round_numbers[j] < number) ++j;
    if (j == baseline.rounds.size()) break;
    if (baseline.round_numbers[j] != number) continue;
    own.push_back(round_median(arm.rounds[i]));
    theirs.push_back(round_median(baseline.rounds[j]));
  }
  if (own.empty()) return std::nullopt;
  return paired_ratio(theirs, own, confidence);
}

}  // namespace hasten
