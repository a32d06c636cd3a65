// SPDX-License-Identifier: Apache-2.0
// The machine as it was: what a number means nothing without.
#pragma once

#include "base/json.h"

#include <string>
#include <vector>

namespace hasten {

struct Environment {
  std::string hasten_version, cpu_model, kernel, architecture;
  std::vector<std::string> instruction_sets;  // "avx2", "avx512f", ...: of /proc/cpuinfo.
  int cpus = 0;            // This process may use: affinity and cgroup quota.
  uint64_t memory_bytes = 0;
  double load_average = 0; // One minute, at the start.
  std::string governor;    // Empty: not readable.
  std::string timestamp;   // UTC.

  static Environment of_this_machine();
  Json to_json() const;
  static Environment from_json(const Json& json);
};

}  // namespace hasten
