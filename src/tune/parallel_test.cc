// SPDX-License-Identifier: Apache-2.0
#include "tune/parallel.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace hasten {
namespace {

TEST_CASE("for_each_in_parallel: every item once, whatever the number of threads") {
  for (const size_t at_once : {0, 1, 3, 100}) {
    CAPTURE(at_once);
    std::vector<std::atomic<int>> calls(20);
    for_each_in_parallel(calls.size(), at_once, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) CHECK(count == 1);
  }
  for_each_in_parallel(0, 4, [](size_t) { FAIL("there is nothing to do"); });
}

TEST_CASE("for_each_in_parallel: an exception reaches the caller, after all the others ended") {
  std::vector<std::atomic<int>> calls(20);
  const auto all = [&] {
    for_each_in_parallel(calls.size(), 3, [&](size_t i) {
      ++calls[i];
      if (i == 4) throw std::runtime_error("the fifth");
    });
  };
  CHECK_THROWS_WITH_AS(all(), "the fifth", std::runtime_error);
  for (const std::atomic<int>& count : calls) CHECK(count == 1);
}

}  // namespace
}  // namespace hasten
