// SPDX-License-Identifier: Apache-2.0
// The figures behind a report, from the samples of a race. Pure functions.
// None wherever there are no samples to say it from.
#pragma once

#include "measure/race.h"
#include "stats/stats.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hasten {

// Median call time of one round in ns; at least 1, so that ratios exist.
double round_median(std::span<const int64_t> calls);
std::vector<double> round_medians(const ArmSamples& arm);

// The median over all calls. Calls of one round resemble each other, so the interval is
// never narrower than that of the round medians.
std::optional<Estimate> latency_ms(const ArmSamples& arm, double confidence);

// How many times faster `arm` is: baseline's time / arm's time, round by round over the
// rounds that both took part in. Fewer than samples_for_centre() of them: 0 to infinity.
std::optional<Estimate> paired_speedup(const ArmSamples& arm, const ArmSamples& baseline,
                                       double confidence);

}  // namespace hasten
