// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <sys/resource.h>

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> lines_of(const fs::path& path) {
  const auto content = read_file(path);
  return content ? split(*content, '\n') : std::vector<std::string>();
}

std::optional<double> number(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The value behind "Key: 123 kB" or "key 123".
std::optional<uint64_t> field(const fs::path& path, std::string_view key) {
  for (const std::string& line : lines_of(path)) {
    if (!line.starts_with(key) || line.size() <= key.size()) continue;
    const char next = line[key.size()];
    if (next != ':' && next != ' ') continue;
    const auto value = number(std::string_view(line).substr(key.size() + 1));
    if (!value) return std::nullopt;
    return static_cast<uint64_t>(*value) * (line.ends_with(" kB") ? 1024 : 1);
  }
  return std::nullopt;
}

// The first number of a file that holds one; none for "max".
std::optional<double> first_number(const fs::path& path) {
  const auto content = read_file(path);
  return content ? number(*content) : std::nullopt;
}

// The folders of this process's control group and of those above it: each may limit.
// Inside a container the path in /proc may be the host's, which does not exist here;
// then only the top one, where the container's own limits are, is found.
std::vector<fs::path> group_folders(const fs::path& root, std::string_view controller) {
  const bool v2 = controller.empty();
  const fs::path top = root / "sys/fs/cgroup" / controller;
  std::vector<fs::path> folders;
  for (const std::string& line : lines_of(root / "proc/self/cgroup")) {
    // "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1.
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> controllers = split(parts[1], ',');
    const bool matches =
        v2 ? controllers.empty()
           : std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
    if (!matches) continue;
    fs::path below = fs::path(parts[2]).relative_path();
    for (; !below.empty(); below = below.parent_path()) folders.push_back(top / below);
  }
  folders.push_back(top);
  return folders;
}

// CPUs per period: "max 100000" or "150000 100000".
std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  const auto take = [&](std::optional<double> quota, std::optional<double> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    least = std::min(least.value_or(*quota / *period), *quota / *period);
  };
  for (const fs::path& folder : group_folders(root, "")) {
    const auto content = read_file(folder / "cpu.max");
    if (!content) continue;
    const std::vector<std::string> parts = split(trim(*content), ' ');
    if (parts.size() == 2) take(number(parts[0]), number(parts[1]));
  }
  for (const fs::path& folder : group_folders(root, "cpu")) {
    take(first_number(folder / "cpu.cfs_quota_us"), first_number(folder / "cpu.cfs_period_us"));
  }
  return least;
}

int cpus_of_affinity() {
  // The kernel refuses a mask smaller than its own, whose size only it knows.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const bool known = set && ::sched_getaffinity(0, size, set) == 0;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

struct MemoryFiles {
  std::string_view controller, limit, usage, cache;
};
constexpr MemoryFiles kMemoryFiles[] = {
    {"", "memory.max", "memory.current", "inactive_file"},
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};

}  // namespace

int usable_cpus(const fs::path& root) {
  const int allowed = cpus_of_affinity();
  const std::optional<double> quota = cpu_quota(root);
  if (!quota) return allowed;
  // Rounded down: a thread more than the quota is stopped for part of each period.
  return std::max(1, static_cast<int>(std::min<double>(allowed, std::floor(*quota + 1e-9))));
}

uint64_t available_memory_bytes(const fs::path& root) {
  uint64_t available = field(root / "proc/meminfo", "MemAvailable").value_or(0);
  for (const MemoryFiles& files : kMemoryFiles) {
    for (const fs::path& folder : group_folders(root, files.controller)) {
      const auto limit = first_number(folder / files.limit);
      const auto usage = first_number(folder / files.usage);
      // Version 1 says "no limit" with a number near 2^63.
      if (!limit || !usage || *limit >= 9e18) continue;
      // Cached files count as used, but give way before anything is killed.
      const auto cache =
          static_cast<double>(field(folder / "memory.stat", files.cache).value_or(0));
      const auto left = static_cast<uint64_t>(std::max(0.0, *limit - *usage + cache));
      available = std::min(available == 0 ? left : available, left);
    }
  }
  return available;
}

double load_average(const fs::path& root) {
  return first_number(root / "proc/loadavg").value_or(0);
}

uint64_t own_peak_bytes(const fs::path& root) {
  return field(root / "proc/self/status", "VmHWM").value_or(0);
}

double consumed_cpu_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    if (getrusage(who, &usage) != 0) continue;
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

std::optional<double> process_cpu_seconds(int pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0) return std::nullopt;
  if (::clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace hasten
