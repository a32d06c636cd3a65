// SPDX-License-Identifier: Apache-2.0
#include "tune/reservation.h"

#include <doctest/doctest.h>

#include <vector>

namespace hasten {
namespace {

TEST_CASE("Reservation: what is given back can be taken again") {
  std::atomic<uint64_t> taken = 0;
  std::optional<Reservation> first = Reservation::take(taken, 60, 100);
  REQUIRE(first);
  CHECK_FALSE(Reservation::take(taken, 50, 100));
  CHECK(taken == 60);
  std::optional<Reservation> second = Reservation::take(taken, 40, 100);
  CHECK(second);
  CHECK(taken == 100);
  first.reset();
  CHECK(taken == 40);
  CHECK(Reservation::take(taken, 60, 100));
}

TEST_CASE("Reservation: it moves with its owner and is given back once") {
  std::atomic<uint64_t> taken = 0;
  {
    std::vector<Reservation> owners(1);
    owners[0] = *Reservation::take(taken, 10, 100);
    owners.reserve(100);
    CHECK(taken == 10);
    owners[0] = Reservation();
    CHECK(taken == 0);
    owners[0] = *Reservation::take(taken, 20, 100);
  }
  CHECK(taken == 0);
}

}  // namespace
}  // namespace hasten
