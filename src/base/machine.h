// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine it runs on. Control groups (containers)
// count, versions 1 and 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hasten {

// CPUs that this process may run on, at most its quota (rounded down), at least 1.
// `root`: where /proc and /sys are; for tests.
int usable_cpus(const std::filesystem::path& root = "/");
// What can be taken without swapping or being killed. 0: unknown.
uint64_t available_memory_bytes(const std::filesystem::path& root = "/");
// Runnable processes, mean of the last minute. 0: unknown.
double load_average(const std::filesystem::path& root = "/");
// The most that this process had resident at once. 0: unknown.
uint64_t own_peak_bytes(const std::filesystem::path& root = "/");
// Processor time of this process and of its children that have ended.
double consumed_cpu_seconds();
// Of another process, so far, to the nanosecond. None: it is gone.
std::optional<double> process_cpu_seconds(int pid);

}  // namespace hasten
