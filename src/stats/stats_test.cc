// SPDX-License-Identifier: Apache-2.0
#include "stats/stats.h"

#include <algorithm>
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

// w = sorted((x[i] + x[j]) / 2 for all i <= j); value: numpy.median(w). The ends are the first
// and the last of w between which every d has
// scipy.stats.wilcoxon(x - d, method="exact").pvalue > 1 - confidence.
TEST_CASE("centre_interval: the median of the pairs' means, and Wilcoxon's interval") {
  const Samples eight{0.31, -0.12, 0.08, 0.22, 0.45, -0.05, 0.17, 0.64};
  const Estimate at99 = centre_interval(eight, 0.99), at95 = centre_interval(eight, 0.95);
  CHECK(at99.value == Approx(0.1975));
  CHECK(at99.low == Approx(-0.12));
  CHECK(at99.high == Approx(0.64));
  CHECK(at95.value == Approx(0.1975));
  CHECK(at95.low == Approx(-0.02));
  CHECK(at95.high == Approx(0.45));
  const Estimate six = centre_interval(std::span(eight).first(6), 0.95);
  CHECK(six.value == Approx(0.15));
  CHECK(six.low == Approx(-0.12));
  CHECK(six.high == Approx(0.45));
}

TEST_CASE("centre_interval: a sample far out costs a step, not the interval") {
  const Samples x{0.012, -0.034, 0.051, 0.027, 0.08,   -0.003,
                  0.019, 0.044,  0.061, 3.2,   -0.015, 0.038};
  const Estimate at95 = centre_interval(x, 0.95), at99 = centre_interval(x, 0.99);
  CHECK(at95.value == Approx(0.032));
  CHECK(at95.low == Approx(0.005));
  CHECK(at95.high == Approx(0.0705));
  CHECK(at99.low == Approx(-0.0035));
  CHECK(at99.high == Approx(1.6095));  // Twelve are few for 99 %: half its distance.
  Samples farther = x;
  farther[9] = 1e9;
  CHECK(centre_interval(farther, 0.95).high == at95.high);
}

// With 1, 2, ..., n the Walsh averages are k / 2, so that the rank shows in the end of the
// interval. The rank is the largest k with
// scipy.stats._wilcoxon.WilcoxonDistribution(n).cdf(k - 1) <= (1 - confidence) / 2.
TEST_CASE("centre_interval: ranks from the exact distribution, and close to it beyond") {
  struct Case {
    size_t n;
    double confidence;
    size_t exact;
    size_t slack;  // How far the normal approximation may lie on the wide side.
  };
  for (const Case& c : {Case{6, 0.95, 1, 0}, Case{8, 0.99, 1, 0}, Case{12, 0.95, 14, 0},
                        Case{12, 0.999, 2, 0}, Case{20, 0.99, 38, 0}, Case{30, 0.99, 110, 0},
                        Case{50, 0.99, 374, 0}, Case{51, 0.95, 454, 3}, Case{60, 0.99, 568, 5},
                        Case{200, 0.99, 7945, 10}, Case{200, 0.999, 7369, 20}}) {
    CAPTURE(c.n);
    const Samples x = ranks(c.n);
    std::vector<double> averages;
    for (size_t i = 0; i < c.n; ++i) {
      for (size_t j = i; j < c.n; ++j) averages.push_back((x[i] + x[j]) / 2);
    }
    std::sort(averages.begin(), averages.end());
    const Estimate e = centre_interval(x, c.confidence);
    CHECK(e.low <= averages[c.exact - 1]);
    CHECK(e.low >= averages[c.exact - 1 - c.slack]);
    CHECK(e.high == static_cast<double>(c.n + 1) - e.low);  // Symmetric around the centre.
    CHECK(e.value == static_cast<double>(c.n + 1) / 2);
  }
}

TEST_CASE("centre_interval: too few samples say nothing about the spread") {
  CHECK(samples_for_centre(0.99) == 8);  // 2 * 0.5 ** 8 is at most 1 %, 2 * 0.5 ** 7 is not.
  CHECK(samples_for_centre(0.95) == 6);
  const Samples seven{4, 4, 4, 4, 4, 4, 4};
  const Estimate e = centre_interval(seven, 0.99);
  CHECK(e.value == 4);
  CHECK(e.low == -std::numeric_limits<double>::infinity());
  CHECK(e.high == std::numeric_limits<double>::infinity());
  CHECK(centre_interval(Samples{4}, 0.5).value == 4);
  CHECK_THROWS_AS(centre_interval(Samples{}, 0.95), std::logic_error);
}

TEST_CASE("centre_interval: thousands of samples need no memory for all their pairs") {
  Samples x(20000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1e9 + static_cast<double>(i);
  const Estimate e = centre_interval(x, 0.99);
  CHECK(e.value == 1e9 + 9999.5);
  // Half of 2.576 * the standard error of the median of a uniform spread of 20000 and less.
  CHECK(e.high - e.low < 300);
  CHECK(e.low < e.value);
}

// numpy.exp of the above of numpy.log(a / b).
TEST_CASE("paired_ratio: the centre of the ratios with its interval") {
  const Samples a{110, 121, 98, 105, 112, 99}, b{100, 108, 95, 99, 101, 97};
  const Estimate e = paired_ratio(a, b, 0.95);
  CHECK(e.value == Approx(1.06954623));
  CHECK(e.low == Approx(1.02061856));
  CHECK(e.high == Approx(1.12037037));
  const Estimate inverse = paired_ratio(b, a, 0.95);
  CHECK(inverse.low == Approx(1 / e.high));
  CHECK_THROWS_AS(paired_ratio(a, Samples{1}, 0.95), std::logic_error);
  CHECK_THROWS_AS(paired_ratio(Samples{0}, Samples{1}, 0.95), std::logic_error);
}

TEST_CASE("paired_ratio: one round that another program spoiled does not spoil the interval") {
  Samples a, b;
  for (int i = 0; i < 20; ++i) {
    b.push_back(100 + i % 3);
    a.push_back(14 + 0.1 * (i % 5));
  }
  a[7] *= 400;
  const Estimate e = paired_ratio(a, b, 0.99);
  CHECK(e.value == Approx(0.14).epsilon(0.02));
  CHECK(e.low > 0.135);
  CHECK(e.high < 0.147);
}

TEST_CASE("paired_ratio: seven rounds establish nothing at 99 %") {
  const Samples a(7, 200), b(7, 100);
  const Estimate e = paired_ratio(a, b, 0.99);
  CHECK(e.value == Approx(2));
  CHECK(e.low == 0);
  CHECK(e.high == std::numeric_limits<double>::infinity());
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

// How often the interval covers the ratio of two arms whose rounds drift together and whose
// own noise is what `noise` draws.
template <class Noise>
double coverage(size_t rounds, double confidence, uint64_t seed, Noise noise) {
  std::mt19937_64 engine(seed);
  constexpr int kSeries = 4000;
  int covered = 0;
  for (int series = 0; series < kSeries; ++series) {
    Samples a(rounds), b(rounds);
    for (size_t i = 0; i < rounds; ++i) {
      const double drift = 1 + 0.5 * uniform(engine);
      a[i] = 1.03 * drift * std::exp(noise(engine));
      b[i] = drift * std::exp(noise(engine));
    }
    const Estimate e = paired_ratio(a, b, confidence);
    covered += e.low <= 1.03 && 1.03 <= e.high;
  }
  return covered / double{kSeries};
}

// The ranks above promise, whatever the noise: 1 - 2 * cdf(13) of 12 pairs = 0.9575 (at 95 %),
// 1 - 2 * cdf(109) of 30 pairs = 0.9902 (at 99 %). Over 4000 series one sigma is 0.32 % and
// 0.16 %; the bounds are four.
TEST_CASE("paired_ratio: the interval covers the true ratio as often as promised") {
  const auto check = [](auto noise) {
    CHECK(coverage(12, 0.95, 20240602, noise) == Approx(0.9575).epsilon(0.013));
    CHECK(coverage(30, 0.99, 20240603, noise) == Approx(0.9902).epsilon(0.0065));
  };
  SUBCASE("under normal noise") {
    check([](std::mt19937_64& engine) { return 0.02 * normal(engine); });
  }
  SUBCASE("under heavy tails: Student's t with two degrees, whose variance is infinite") {
    check([](std::mt19937_64& engine) {
      return 0.02 * normal(engine) / std::sqrt(-std::log(uniform(engine)));
    });
  }
  SUBCASE("under skewed noise: most rounds are near the least time") {
    check([](std::mt19937_64& engine) { return -0.02 * std::log(uniform(engine)); });
  }
  SUBCASE("when every tenth turn takes up to a thousand times as long") {
    check([](std::mt19937_64& engine) {
      const double far = uniform(engine) < 0.1 ? 7 * uniform(engine) : 0;
      return 0.02 * normal(engine) + far;
    });
  }
}

TEST_CASE("paired_ratio: ten percent of spoiled turns leave the interval useful") {
  // In half the series the ends are within 8 % of each other; Student's t: a factor of 5.
  std::mt19937_64 engine(20240604);
  Samples widths;
  for (int series = 0; series < 200; ++series) {
    Samples a(30), b(30);
    for (size_t i = 0; i < 30; ++i) {
      for (Samples* arm : {&a, &b}) {
        const double far = uniform(engine) < 0.1 ? 7 * uniform(engine) : 0;
        (*arm)[i] = std::exp(0.02 * normal(engine) + far);
      }
    }
    const Estimate e = paired_ratio(a, b, 0.99);
    widths.push_back(e.high / e.low);
  }
  CHECK(median(widths) < 1.08);
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
