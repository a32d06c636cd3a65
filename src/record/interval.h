// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"

namespace hasten {

// An estimate with a confidence interval around it; low <= estimate <= high.
struct Interval {
  double estimate = 0;
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

}  // namespace hasten
