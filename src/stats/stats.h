// SPDX-License-Identifier: Apache-2.0
// Pure functions over samples: no clock, no file, no random device.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hasten {

struct Estimate {
  double value = 0, low = 0, high = 0;
};

double median(std::span<const double> samples);       // Not empty.
double quantile(std::span<const double> samples, double q);  // Type 7, as numpy.quantile.

// Distribution-free interval of the median from order statistics: the ranks come
// from the binomial distribution (Conover, Practical Nonparametric Statistics, 3.2).
// Fewer samples than the confidence needs: the whole range.
Estimate median_interval(std::span<const double> samples, double confidence);

// Mean with Student's t interval. One sample: an infinite interval.
Estimate mean_interval(std::span<const double> samples, double confidence);

// The ratio a/b from log-ratios of paired rounds: exp of mean_interval of ln(a_i / b_i).
Estimate paired_ratio(std::span<const double> a, std::span<const double> b, double confidence);

enum class Comparison { kAbove, kBelow, kSame, kCannotTell };
// Of a ratio against 1 with an indifference zone of +-zone: kAbove when the interval
// lies above 1 and the estimate beyond the zone, kSame when the whole interval lies
// inside the zone.
Comparison compare_to_one(const Estimate& ratio, double zone);

// How many samples a claim about the q-quantile needs at this confidence when none
// may lie beyond: ceil(ln(1 - confidence) / ln(q)). p90 44, p95 90, p99 459 at 99 %.
size_t samples_for_quantile(double q, double confidence);

}  // namespace hasten
