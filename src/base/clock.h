// SPDX-License-Identifier: Apache-2.0
// Time. std::chrono::steady_clock is named in this folder only.
#pragma once

#include <chrono>
#include <string>

namespace hasten {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::nanoseconds now() const = 0;  // Monotonic; the origin means nothing.
};

const Clock& real_clock();

std::string utc_timestamp();  // "2026-01-31T12:34:56Z"

}  // namespace hasten
