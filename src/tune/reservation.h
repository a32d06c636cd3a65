// SPDX-License-Identifier: Apache-2.0
// A part of something that there is only so much of, given back when its owner goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace hasten {

class Reservation {
 public:
  Reservation() = default;
  // None: with it more than `limit` would be taken. From any thread.
  static std::optional<Reservation> take(std::atomic<uint64_t>& taken, uint64_t amount,
                                         uint64_t limit) {
    Reservation one;
    one.taken_ = &taken;
    one.amount_ = amount;
    if (taken.fetch_add(amount) + amount <= limit) return one;
    return std::nullopt;
  }
  Reservation(Reservation&& other) noexcept
      : taken_(std::exchange(other.taken_, nullptr)), amount_(other.amount_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(taken_, other.taken_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Reservation() {
    if (taken_) *taken_ -= amount_;
  }

 private:
  std::atomic<uint64_t>* taken_ = nullptr;
  uint64_t amount_ = 0;
};

}  // namespace hasten
