// SPDX-License-Identifier: Apache-2.0
#include "record/interval.h"

#include "record/or_null.h"

#include <limits>

namespace hasten {

Json to_json(const Interval& interval, std::string_view estimate_name) {
  Json json = Json::object();
  json.set(estimate_name, finite_or_null(interval.estimate));
  json.set("low", finite_or_null(interval.low));
  json.set("high", finite_or_null(interval.high));
  return json;
}

Interval interval_from_json(const Json& json, std::string_view estimate_name) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {.estimate = json[estimate_name].as_double(std::numeric_limits<double>::quiet_NaN()),
          .low = json["low"].as_double(-kInfinity),
          .high = json["high"].as_double(kInfinity)};
}

}  // namespace hasten
