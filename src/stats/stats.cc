// SPDX-License-Identifier: Apache-2.0
#include "stats/stats.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
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

// Up to here the null distribution of the signed-rank statistic is worked out. The normal
// approximation has heavier tails: beyond, the interval is wider by some thousandths.
constexpr size_t kExactUpTo = 50;

// The largest rank k, from 1, such that the signed-rank statistic of n samples is below k with
// probability at most `tail`, were their centre 0. 0: there is none.
size_t signed_rank(size_t n, double tail) {
  const size_t most = n * (n + 1) / 2;
  if (n > kExactUpTo) {
    const auto count = static_cast<double>(n);
    const double mean = static_cast<double>(most) / 2;
    const double deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
    const double z = boost::math::quantile(boost::math::complement(boost::math::normal(), tail));
    return static_cast<size_t>(std::max(0.0, std::floor(mean - z * deviation + 0.5)));
  }
  // The statistic sums those of the ranks 1 ... n whose samples are above 0; each is with
  // probability 1/2. probability[t]: of the sum t, of the ranks so far.
  std::vector<double> probability(most + 1);
  probability[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank) {
    for (size_t t = rank * (rank + 1) / 2; t >= rank; --t) {
      probability[t] = (probability[t] + probability[t - rank]) / 2;
    }
    for (size_t t = 0; t < rank; ++t) probability[t] /= 2;
  }
  double below = 0;
  size_t k = 0;
  while (k < most && (below += probability[k]) <= tail) ++k;
  return k;
}

// How many Walsh averages of ascending samples are at most `limit`.
size_t walsh_averages_up_to(std::span<const double> sorted, double limit) {
  size_t count = 0;
  size_t end = sorted.size();  // Of those whose mean with sorted[i] is at most the limit.
  for (size_t i = 0; i < sorted.size(); ++i) {
    while (end > i && (sorted[i] + sorted[end - 1]) / 2 > limit) --end;
    if (end <= i) break;
    count += end - i;
  }
  return count;
}

// The Walsh average of this rank, from 1, by bisection: there are too many to keep them all.
double walsh_average(std::span<const double> sorted, size_t rank) {
  double low = std::nextafter(sorted.front(), -HUGE_VAL), high = sorted.back();
  while (true) {  // Fewer than `rank` are at most low, at least `rank` are at most high.
    const double middle = low / 2 + high / 2;
    if (middle <= low || middle >= high) return high;
    (walsh_averages_up_to(sorted, middle) < rank ? low : high) = middle;
  }
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

Estimate centre_interval(std::span<const double> samples, double confidence) {
  require(!samples.empty(), "centre_interval: no samples");
  require_confidence(confidence);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t averages = sorted.size() * (sorted.size() + 1) / 2;
  const double lower = walsh_average(sorted, (averages + 1) / 2);
  const double value =
      averages % 2 == 1 ? lower : lower / 2 + walsh_average(sorted, averages / 2 + 1) / 2;
  const size_t rank = signed_rank(sorted.size(), (1 - confidence) / 2);
  if (rank == 0) return {value, -HUGE_VAL, HUGE_VAL};
  return {value, walsh_average(sorted, rank), walsh_average(sorted, averages + 1 - rank)};
}

size_t samples_for_centre(double confidence) {
  require_confidence(confidence);
  size_t n = 1;
  while (signed_rank(n, (1 - confidence) / 2) == 0) ++n;
  return n;
}

Estimate paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  require(!a.empty() && a.size() == b.size(), "paired_ratio: the samples are no pairs");
  std::vector<double> logs(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    require(a[i] > 0 && b[i] > 0, "paired_ratio: a sample is not above zero");
    logs[i] = std::log(a[i] / b[i]);
  }
  const Estimate e = centre_interval(logs, confidence);
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
