// SPDX-License-Identifier: Apache-2.0
#include "stats/stats.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hasten {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

void require_confidence(double confidence) {
  require(confidence > 0 && confidence < 1, "stats: a confidence lies between 0 and 1");
}

// P(X <= k) of the binomial distribution with n draws at 1/2.
double half_binomial_cdf(size_t k, size_t n) {
  if (k >= n) return 1;
  return boost::math::ibetac(static_cast<double>(k + 1), static_cast<double>(n - k), 0.5);
}

// The largest rank r, from 1, such that fewer than r samples lie below the median with
// probability at most `tail`. 0: there is none.
size_t lower_rank(size_t n, double tail) {
  size_t low = 0, high = n / 2 + 1;  // The rank is in [low, high).
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (half_binomial_cdf(middle - 1, n) <= tail ? low : high) = middle;
  }
  return low;
}

}  // namespace

double median(std::span<const double> samples) {
  require(!samples.empty(), "median: no samples");
  std::vector<double> values(samples.begin(), samples.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double quantile(std::span<const double> samples, double q) {
  require(!samples.empty(), "quantile: no samples");
  require(q >= 0 && q <= 1, "quantile: q lies between 0 and 1");
  std::vector<double> values(samples.begin(), samples.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const double fraction = position - static_cast<double>(below);
  if (fraction == 0) return *at;
  return *at + fraction * (*std::min_element(at + 1, values.end()) - *at);
}

Estimate median_interval(std::span<const double> samples, double confidence) {
  require(!samples.empty(), "median_interval: no samples");
  require_confidence(confidence);
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  const size_t rank = std::max<size_t>(lower_rank(values.size(), (1 - confidence) / 2), 1);
  return {median(values), values[rank - 1], values[values.size() - rank]};
}

Estimate mean_interval(std::span<const double> samples, double confidence) {
  require(!samples.empty(), "mean_interval: no samples");
  require_confidence(confidence);
  const auto n = static_cast<double>(samples.size());
  double sum = 0;
  for (const double x : samples) sum += x;
  const double mean = sum / n;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (samples.size() == 1) return {mean, -kInfinity, kInfinity};
  double squares = 0;  // Around the mean: the sum of squares less the square cancels badly.
  for (const double x : samples) squares += (x - mean) * (x - mean);
  const boost::math::students_t distribution(n - 1);
  const double t =
      boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
  const double half = t * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

Estimate paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  require(!a.empty() && a.size() == b.size(), "paired_ratio: the samples are no pairs");
  std::vector<double> logs(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    require(a[i] > 0 && b[i] > 0, "paired_ratio: a sample is not above zero");
    logs[i] = std::log(a[i] / b[i]);
  }
  const Estimate e = mean_interval(logs, confidence);
  return {std::exp(e.value), std::exp(e.low), std::exp(e.high)};
}

Comparison compare_to_one(const Estimate& ratio, double zone) {
  // Symmetric for a/b and b/a: [1/(1+zone), 1+zone].
  const double upper = 1 + zone, lower = 1 / upper;
  if (ratio.low > 1 && ratio.value > upper) return Comparison::kAbove;
  if (ratio.high < 1 && ratio.value < lower) return Comparison::kBelow;
  if (ratio.low >= lower && ratio.high <= upper) return Comparison::kSame;
  return Comparison::kCannotTell;
}

size_t samples_for_quantile(double q, double confidence) {
  require(q > 0 && q < 1, "samples_for_quantile: q lies between 0 and 1");
  require_confidence(confidence);
  return static_cast<size_t>(std::ceil(std::log1p(-confidence) / std::log(q)));
}

}  // namespace hasten
