// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <cmath>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/test_support.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;
using testing::folder_for;

// A /proc and /sys of our own making.
class FakeRoot {
 public:
  FakeRoot() : folder_(folder_for("machine")) {}
  void write(const char* path, std::string_view content) {
    REQUIRE(make_folder((root() / path).parent_path()));
    REQUIRE(write_file_atomically(root() / path, content));
  }
  fs::path root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

int allowed_cpus() {
  cpu_set_t set;
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  return CPU_COUNT(&set);
}

TEST_CASE("usable_cpus: without a control group it is the affinity") {
  CHECK(usable_cpus(FakeRoot().root()) == allowed_cpus());
}

TEST_CASE("usable_cpus: a thread that may use one CPU has one") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const int found = usable_cpus(FakeRoot().root());
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(found == 1);
}

TEST_CASE("usable_cpus: the smallest quota on the way up counts, rounded down, at least one") {
  FakeRoot machine;
  machine.write("proc/self/cgroup", "0::/a/b\n");
  machine.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(usable_cpus(machine.root()) == allowed_cpus());
  machine.write("sys/fs/cgroup/a/cpu.max", "190000 100000\n");
  CHECK(usable_cpus(machine.root()) == 1);
  machine.write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  CHECK(usable_cpus(machine.root()) == 1);
}

TEST_CASE("usable_cpus: a quota of version 1, named by a path that only the host knows") {
  FakeRoot machine;
  machine.write("proc/self/cgroup", "8:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  CHECK(usable_cpus(machine.root()) == allowed_cpus());
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  CHECK(usable_cpus(machine.root()) == 1);
}

TEST_CASE("available_memory_bytes: the machine's, bounded by the control group's rest") {
  FakeRoot machine;
  CHECK(available_memory_bytes(machine.root()) == 0);
  machine.write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    4000 kB\nSwap: 1 kB\n");
  CHECK(available_memory_bytes(machine.root()) == 4000u * 1024);
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.write("sys/fs/cgroup/a/memory.max", "max\n");
  machine.write("sys/fs/cgroup/a/memory.current", "1000\n");
  CHECK(available_memory_bytes(machine.root()) == 4000u * 1024);
  machine.write("sys/fs/cgroup/a/memory.max", "2000000\n");
  CHECK(available_memory_bytes(machine.root()) == 1'999'000u);
  machine.write("sys/fs/cgroup/a/memory.current", "1500000\n");
  machine.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 400000\n");
  CHECK(available_memory_bytes(machine.root()) == 900'000u);
}

TEST_CASE("available_memory_bytes: version 1 says 'no limit' with a huge number") {
  FakeRoot machine;
  machine.write("proc/meminfo", "MemAvailable: 4000 kB\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n");
  CHECK(available_memory_bytes(machine.root()) == 4000u * 1024);
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "10500\n");
  CHECK(available_memory_bytes(machine.root()) == 10'000u);
}

TEST_CASE("load_average and own_peak_bytes: read from the machine's files") {
  FakeRoot machine;
  machine.write("proc/loadavg", "1.25 0.50 0.10 1/123 456\n");
  machine.write("proc/self/status", "VmPeak:\t 900 kB\nVmHWM:\t     77 kB\n");
  CHECK(load_average(machine.root()) == 1.25);
  CHECK(own_peak_bytes(machine.root()) == 77u * 1024);
}

TEST_CASE("process_cpu_seconds: the work of another process, until it is gone") {
  Spawner spawner;
  Result<ChildProcess> busy = spawner.start({.command = {"sh", "-c", "while :; do :; done"}});
  REQUIRE(busy);
  const int pid = busy->pid();
  const double first = *process_cpu_seconds(pid);
  while (process_cpu_seconds(pid).value_or(HUGE_VAL) <= first) std::this_thread::yield();
  busy->stop();
  const double stopped = *process_cpu_seconds(pid);
  CHECK(*process_cpu_seconds(pid) == stopped);
  busy->kill_group();
  CHECK_FALSE(process_cpu_seconds(pid));
}

TEST_CASE("own_peak_bytes: counts memory that was touched and given back") {
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<char> touched(kBytes, 1);
  CHECK(own_peak_bytes() >= kBytes);
  CHECK(available_memory_bytes() > 0);
  CHECK(usable_cpus() >= 1);
}

}  // namespace
}  // namespace hasten
