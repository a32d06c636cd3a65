// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace hasten {

// Calls work(0) ... work(count - 1), each once, on at most `at_once` threads, and
// waits for all. `work` reports through what it writes; it must not throw.
template <class Work>
void for_each_in_parallel(size_t count, size_t at_once, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(at_once, count); ++i) others.emplace_back(take);
  take();
}

}  // namespace hasten
