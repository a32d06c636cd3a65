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

double median(std::span<const double> samples);              // Not empty.
double quantile(std::span<const double> samples, double q);  // Type 7, as numpy.quantile.

// Distribution-free interval of the median from order statistics: the ranks come
// from the binomial distribution (Conover, Practical Nonparametric Statistics, 3.2).
// Fewer samples than the confidence needs: the whole range.
Estimate median_interval(std::span<const double> samples, double confidence);

// Centre of a symmetric distribution: the Hodges-Lehmann estimate (the median of the Walsh
// averages, the means of all pairs x_i, x_j, i <= j) with Tukey's interval, whose ends are
// Walsh averages of the rank at which Wilcoxon's signed-rank test rejects (Hollander, Wolfe,
// Chicken, Nonparametric Statistical Methods, 3rd edition, 3.2 and 3.3). It holds for every
// symmetric distribution. A sample far out moves the estimate by a step; an end by half its
// distance, and from 15 samples on (at 99 %) by a step as well. Fewer samples than
// samples_for_centre(): an infinite interval.
Estimate centre_interval(std::span<const double> samples, double confidence);
// 8 at 99 %, 6 at 95 %: with fewer, all of them lie on one side of the centre too often.
size_t samples_for_centre(double confidence);

// The ratio a/b: exp of centre_interval of ln(a_i / b_i) of the paired rounds. Rounds in which
// something disturbed a as likely as b leave it where it is. Too few of them: 0 to infinity.
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
