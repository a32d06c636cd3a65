// SPDX-License-Identifier: Apache-2.0
// Looks at the memory of a child often enough to stop it before it fills the machine, but
// spends at most a twentieth of a CPU on it: each look reads all of /proc.
#pragma once

#include "base/child_process.h"
#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace hasten {

class MemoryWatch {
 public:
  explicit MemoryWatch(uint64_t limit) : limit_(limit) {}

  // The bytes resident, when they are over the limit. Finds nothing before it is time.
  std::optional<uint64_t> excess(const ChildProcess& child) {
    return until_next() > std::chrono::nanoseconds(0) ? std::nullopt : look(child);
  }
  // The same, whatever the time.
  std::optional<uint64_t> look(const ChildProcess& child) {
    if (limit_ == 0) return std::nullopt;
    const std::chrono::nanoseconds begin = real_clock().now();
    const uint64_t resident = child.resident_bytes();
    const std::chrono::nanoseconds cost = real_clock().now() - begin;
    next_ = real_clock().now() + std::max<std::chrono::nanoseconds>(kInterval, 20 * cost);
    return resident > limit_ ? std::optional(resident) : std::nullopt;
  }
  std::chrono::nanoseconds until_next() const {
    return limit_ == 0 ? std::chrono::nanoseconds::max() : next_ - real_clock().now();
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{100};

  uint64_t limit_;
  std::chrono::nanoseconds next_ = real_clock().now() + kInterval;
};

}  // namespace hasten
