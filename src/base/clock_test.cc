// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <doctest/doctest.h>

#include "base/fake_clock.h"

namespace hasten {
namespace {

TEST_CASE("FakeClock: moves only when it is told to") {
  FakeClock clock;
  const Clock& read = clock;
  const auto start = read.now();
  CHECK(read.now() == start);
  clock.advance(std::chrono::milliseconds(3));
  CHECK(read.now() - start == std::chrono::milliseconds(3));
}

TEST_CASE("real_clock: never goes back") {
  auto last = real_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const auto next = real_clock().now();
    REQUIRE(next >= last);
    last = next;
  }
}

TEST_CASE("utc_timestamp: looks like 2026-01-31T12:34:56Z") {
  const std::string text = utc_timestamp();
  REQUIRE(text.size() == 20);
  for (size_t i = 0; i < text.size(); ++i) {
    const char expected = "0000-00-00T00:00:00Z"[i];
    CHECK((expected == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == expected));
  }
}

}  // namespace
}  // namespace hasten
