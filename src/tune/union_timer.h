// SPDX-License-Identifier: Apache-2.0
// Wall time during which at least one of several pieces of work was under way. Pieces
// that overlap, as parallel builds do, count once.
#pragma once

#include "base/clock.h"

#include <chrono>
#include <cstddef>
#include <mutex>

namespace hasten {

class UnionTimer {
 public:
  explicit UnionTimer(const Clock& clock) : clock_(clock) {}

  // A piece of work, from now to the end of the scope. From any thread.
  class Scope {
   public:
    explicit Scope(UnionTimer& timer) : timer_(timer) { timer_.begin(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { timer_.end(); }

   private:
    UnionTimer& timer_;
  };
  [[nodiscard]] Scope piece() { return Scope(*this); }

  // Of the pieces that have ended; of those under way, up to now.
  std::chrono::nanoseconds total() const {
    const std::lock_guard lock(mutex_);
    return under_way_ == 0 ? total_ : total_ + clock_.now() - since_;
  }

 private:
  void begin() {
    const std::lock_guard lock(mutex_);
    if (under_way_++ == 0) since_ = clock_.now();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) total_ += clock_.now() - since_;
  }

  const Clock& clock_;
  mutable std::mutex mutex_;
  size_t under_way_ = 0;
  std::chrono::nanoseconds since_{0}, total_{0};
};

}  // namespace hasten
