// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <doctest/doctest.h>

#include <limits>

namespace hasten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("figure: three digits, whatever the size") {
  CHECK(figure(0) == "0.000");
  CHECK(figure(0.0123) == "0.012");
  CHECK(figure(3.4142) == "3.41");
  CHECK(figure(12.34) == "12.3");
  CHECK(figure(12345.6) == "12346");
  CHECK(figure(0.000123) == "1.23e-04");
  CHECK(figure(4e53) == "4.00e+53");
  CHECK(figure(-kInfinity) == "?");
  CHECK(figure(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("ratio_text: the ends have the places of the estimate") {
  CHECK(ratio_text({1.3217, 1.2901, 1.3502}) == "1.32 (1.29 … 1.35)");
  CHECK(ratio_text({0.3701, 0.3, 0.4012}) == "0.37 (0.30 … 0.40)");
  CHECK(ratio_text({0.0034, 0.0031, 0.0042}) == "0.0034 (0.0031 … 0.0042)");
  CHECK(ratio_text({12.34, 9.87, 14.2}) == "12.3 (9.9 … 14.2)");
  CHECK(ratio_text({321.4, 300, 340}) == "321 (300 … 340)");
}

TEST_CASE("ratio_text: an end that is nowhere is not written out") {
  CHECK(ratio_text({1.5, 0, kInfinity}) == "1.50 (too few rounds)");
  CHECK(ratio_text({0.14, 0.13, 4e53}) == "0.14 (0.13 … 4e+53)");
  CHECK(ratio_text({std::numeric_limits<double>::quiet_NaN(), 0, 1}) == "?");
}

}  // namespace
}  // namespace hasten
