// SPDX-License-Identifier: Apache-2.0
// The machine as it was: what a number means nothing without.
#pragma once

#include "base/json.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

struct Environment {
  std::string hasten_version, cpu_model, kernel, architecture;
  // Those that compiled code may need, as /proc/cpuinfo names them: "avx2", "avx512f", "sve".
  std::vector<std::string> instruction_sets;
  int cpus = 0;               // This process may use: affinity and cgroup quota.
  uint64_t memory_bytes = 0;  // Available to this process at the start.
  double load_average = 0;    // One minute, at the start.
  std::string governor;       // Empty: not readable.
  std::string timestamp;      // UTC.

  static Environment of_this_machine();
  Json to_json() const;
  static Environment from_json(const Json& json);
};

struct CpuInfo {
  std::string model;
  std::vector<std::string> instruction_sets;  // Sorted.
};
// From the text of /proc/cpuinfo, x86 or Arm: of its first processor.
CpuInfo parse_cpuinfo(std::string_view text);

}  // namespace hasten
