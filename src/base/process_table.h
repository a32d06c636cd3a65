// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hasten {

struct ProcessFacts {
  int pid = 0;
  int parent = 0;
  int group = 0;
  char state = '?';  // 'R', 'S', 'T' (stopped), 'Z' (ended, not reaped), ...
  uint64_t resident_bytes = 0;
};

std::optional<ProcessFacts> process_facts(int pid);
std::vector<ProcessFacts> all_processes();
// The members of the group, and their descendants who left it.
std::vector<ProcessFacts> group_and_descendants(int group);

}  // namespace hasten
