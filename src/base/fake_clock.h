// SPDX-License-Identifier: Apache-2.0
// A clock that a test moves by hand.
#pragma once

#include "base/clock.h"

namespace hasten {

class FakeClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override { return now_; }
  void advance(std::chrono::nanoseconds by) { now_ += by; }

 private:
  std::chrono::nanoseconds now_{0};
};

}  // namespace hasten
