// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"

#include <string_view>

namespace hasten {

// An estimate with a confidence interval around it; low <= estimate <= high.
struct Interval {
  double estimate = 0;
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// {"estimate", "low", "high"}, or another word for the first ("median"). A bound that is
// not finite is null: null as the estimate reads as NaN, null as a bound as unbounded.
Json to_json(const Interval& interval, std::string_view estimate_name = "estimate");
Interval interval_from_json(const Json& json, std::string_view estimate_name = "estimate");

}  // namespace hasten
