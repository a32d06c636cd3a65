// SPDX-License-Identifier: Apache-2.0
#include "stats/stats.h"

#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace hasten {
namespace {

using Samples = std::vector<double>;
using doctest::Approx;

// 1, 2, ..., n, shuffled: the interval's ends are then the ranks themselves.
Samples ranks(size_t n) {
  Samples values(n);
  for (size_t i = 0; i < n; ++i) values[(i * 7 + 3) % n] = static_cast<double>(i + 1);
  return values;
}

double uniform(std::mt19937_64& engine) {  // (0, 1)
  return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
}

double normal(std::mt19937_64& engine) {  // Box and Muller.
  const double radius = std::sqrt(-2 * std::log(uniform(engine)));
  return radius * std::cos(2 * std::acos(-1.0) * uniform(engine));
}

TEST_CASE("median: the middle, or the mean of the two in the middle") {
  CHECK(median(Samples{3}) == 3);
  CHECK(median(Samples{3, 1, 2}) == 2);
  CHECK(median(Samples{4, 1, 3, 2}) == 2.5);
  CHECK_THROWS_AS(median(Samples{}), std::logic_error);
}

TEST_CASE("quantile: as numpy.quantile") {
  const Samples x{3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<std::pair<double, double>> known{{0, 1},     {0.1, 1},   {0.25, 1.75},
                                                     {0.5, 3.5}, {0.9, 6.9}, {1, 9}};
  for (const auto& [q, value] : known) CHECK(quantile(x, q) == Approx(value));
  CHECK(quantile(Samples{7}, 0.3) == 7);
  CHECK_THROWS_AS(quantile(x, 1.5), std::logic_error);
}

// The largest r with 2 * scipy.stats.binom.cdf(r - 1, n, 0.5) <= 1 - confidence; the
// ends are the samples of rank r and n + 1 - r.
TEST_CASE("median_interval: ranks from the binomial distribution") {
  struct Case {
    size_t n;
    double confidence, low, high;
  };
  for (const Case& c :
       {Case{6, 0.95, 1, 6}, Case{8, 0.99, 1, 8}, Case{10, 0.95, 2, 9}, Case{20, 0.95, 6, 15},
        Case{25, 0.95, 8, 18}, Case{100, 0.95, 40, 61}, Case{100, 0.99, 37, 64},
        Case{1000, 0.95, 469, 532}, Case{100001, 0.95, 49691, 50311}}) {
    CAPTURE(c.n);
    const Estimate e = median_interval(ranks(c.n), c.confidence);
    CHECK(e.low == c.low);
    CHECK(e.high == c.high);
    CHECK(e.value == static_cast<double>(c.n + 1) / 2);
  }
}

TEST_CASE("median_interval: too few samples give the whole range") {
  const Estimate five = median_interval(Samples{5, 1, 4, 2, 3}, 0.95);
  CHECK(five.low == 1);
  CHECK(five.high == 5);
  const Estimate one = median_interval(Samples{5}, 0.95);
  CHECK(one.low == 5);
  CHECK(one.high == 5);
}

// scipy.stats.t.interval(c, n - 1, numpy.mean(x), scipy.stats.sem(x))
TEST_CASE("mean_interval: Student's t") {
  const Samples x{2.1, 2.5, 1.9, 2.2, 2.8};
  const Estimate at95 = mean_interval(x, 0.95), at99 = mean_interval(x, 0.99);
  CHECK(at95.value == Approx(2.3));
  CHECK(at95.low == Approx(1.8610054834574585));
  CHECK(at95.high == Approx(2.738994516542541));
  CHECK(at99.low == Approx(1.5720286821518057));
  CHECK(at99.high == Approx(3.027971317848294));
}

TEST_CASE("mean_interval: one sample says nothing about its spread") {
  const Estimate e = mean_interval(Samples{4}, 0.95);
  CHECK(e.value == 4);
  CHECK(e.low == -std::numeric_limits<double>::infinity());
  CHECK(e.high == std::numeric_limits<double>::infinity());
}

TEST_CASE("mean_interval: a large common offset costs no precision") {
  const Estimate e = mean_interval(Samples{1e9 + 1, 1e9 + 2, 1e9 + 3}, 0.95);
  // scipy.stats.t.ppf(0.975, 2) / 3 ** 0.5
  CHECK(e.high - e.value == Approx(2.4841377118));
}

// l = numpy.log(a / b); numpy.exp(scipy.stats.t.interval(0.95, 3, l.mean(), scipy.stats.sem(l)))
TEST_CASE("paired_ratio: the geometric mean of the ratios with its interval") {
  const Samples a{110, 121, 98, 105}, b{100, 108, 95, 99};
  const Estimate e = paired_ratio(a, b, 0.95);
  CHECK(e.value == Approx(1.0775879311937462));
  CHECK(e.low == Approx(1.01605698));
  CHECK(e.high == Approx(1.14284511));
  const Estimate inverse = paired_ratio(b, a, 0.95);
  CHECK(inverse.low == Approx(1 / e.high));
  CHECK_THROWS_AS(paired_ratio(a, Samples{1}, 0.95), std::logic_error);
  CHECK_THROWS_AS(paired_ratio(Samples{0}, Samples{1}, 0.95), std::logic_error);
}

TEST_CASE("paired_ratio: drift that both share cancels") {
  Samples a, b;
  for (int i = 0; i < 10; ++i) {
    b.push_back(std::exp(i));
    a.push_back(1.05 * std::exp(i));
  }
  const Estimate e = paired_ratio(a, b, 0.99);
  CHECK(e.low == Approx(1.05));
  CHECK(e.high == Approx(1.05));
}

TEST_CASE("median_interval: covers the median as often as its ranks promise") {
  // 1 - 2 * scipy.stats.binom.cdf(7, 25, 0.5) = 0.9567: ranks are whole numbers, so the
  // interval is wider than 95 % asks. Over 2000 series one sigma is 0.46 %.
  std::mt19937_64 engine(20240601);
  int covered = 0;
  for (int series = 0; series < 2000; ++series) {
    Samples x(25);
    for (double& v : x) v = -std::log(uniform(engine));  // Skewed, as latencies are.
    const Estimate e = median_interval(x, 0.95);
    covered += e.low <= std::log(2.0) && std::log(2.0) <= e.high;
  }
  CHECK(covered >= 0.943 * 2000);
  CHECK(covered <= 0.971 * 2000);
}

TEST_CASE("paired_ratio: the 95 % interval covers the true ratio in 95 % of series") {
  std::mt19937_64 engine(20240602);
  int covered = 0;
  for (int series = 0; series < 2000; ++series) {
    Samples a(12), b(12);
    for (size_t i = 0; i < a.size(); ++i) {
      const double drift = 1 + 0.5 * uniform(engine);
      a[i] = 1.03 * drift * std::exp(0.02 * normal(engine));
      b[i] = drift * std::exp(0.02 * normal(engine));
    }
    const Estimate e = paired_ratio(a, b, 0.95);
    covered += e.low <= 1.03 && 1.03 <= e.high;
  }
  CHECK(covered >= 0.935 * 2000);
  CHECK(covered <= 0.965 * 2000);
}

TEST_CASE("compare_to_one: four answers") {
  struct Case {
    Estimate ratio;
    Comparison answer;
  };
  for (const Case& c :
       {Case{{1.05, 1.02, 1.08}, Comparison::kAbove}, Case{{1.02, 1.001, 1.04}, Comparison::kAbove},
        Case{{0.95, 0.93, 0.97}, Comparison::kBelow},
        Case{{1.001, 0.995, 1.007}, Comparison::kSame},
        Case{{1.005, 1.002, 1.008}, Comparison::kSame},  // Real, but too small.
        Case{{1.009, 1.001, 1.02}, Comparison::kCannotTell},
        Case{{1.05, 0.99, 1.12}, Comparison::kCannotTell},
        Case{{1, 0, std::numeric_limits<double>::infinity()}, Comparison::kCannotTell}}) {
    CAPTURE(c.ratio.value);
    CHECK(compare_to_one(c.ratio, 0.01) == c.answer);
  }
}

TEST_CASE("samples_for_quantile: what a percentile claim needs") {
  CHECK(samples_for_quantile(0.90, 0.99) == 44);
  CHECK(samples_for_quantile(0.95, 0.99) == 90);
  CHECK(samples_for_quantile(0.99, 0.99) == 459);
  CHECK(samples_for_quantile(0.999, 0.99) == 4603);
  CHECK(samples_for_quantile(0.99, 0.95) == 299);
}

}  // namespace
}  // namespace hasten
