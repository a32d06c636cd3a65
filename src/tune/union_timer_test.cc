// SPDX-License-Identifier: Apache-2.0
#include "tune/union_timer.h"

#include <doctest/doctest.h>

#include <optional>

#include "base/fake_clock.h"

namespace hasten {
namespace {

using std::chrono::seconds;

TEST_CASE("UnionTimer: work that overlaps counts once, pauses do not count") {
  FakeClock clock;
  UnionTimer timer(clock);
  clock.advance(seconds(5));
  CHECK(timer.total() == seconds(0));
  std::optional<UnionTimer::Scope> first(timer), second;
  clock.advance(seconds(1));
  second.emplace(timer);
  clock.advance(seconds(2));
  CHECK(timer.total() == seconds(3));
  first.reset();
  clock.advance(seconds(4));
  second.reset();
  clock.advance(seconds(100));
  CHECK(timer.total() == seconds(7));
  {
    const UnionTimer::Scope later = timer.piece();
    clock.advance(seconds(1));
  }
  CHECK(timer.total() == seconds(8));
}

}  // namespace
}  // namespace hasten
