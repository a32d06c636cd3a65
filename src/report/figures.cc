// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include "base/text.h"

#include <cmath>

namespace hasten {
namespace {

// Beyond, digits are counted rather than read.
constexpr double kLongest = 1e7;

}  // namespace

std::string figure(double value) {
  if (!std::isfinite(value)) return "?";
  const double size = std::abs(value);
  if ((size > 0 && size < 0.01) || size >= kLongest) return format("{:.2e}", value);
  const int places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return format("{:.{}f}", value, places);
}

std::string ratio_text(const Interval& ratio) {
  if (!std::isfinite(ratio.estimate)) return "?";
  const double size = std::abs(ratio.estimate);
  const int places = size >= 99.95     ? 0
                     : size >= 9.995   ? 1
                     : size >= 0.0995  ? 2
                     : size >= 0.00995 ? 3
                                       : 4;
  const auto text = [&](double value) {
    // An end this far off says nothing but that.
    return value >= 1000 * size && value >= 1e4 ? format("{:.0e}", value)
                                                : format("{:.{}f}", value, places);
  };
  if (!std::isfinite(ratio.high)) return text(ratio.estimate) + " (too few rounds)";
  return format("{} ({} … {})", text(ratio.estimate), text(ratio.low), text(ratio.high));
}

}  // namespace hasten
