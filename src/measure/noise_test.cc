// SPDX-License-Identifier: Apache-2.0
#include "measure/noise.h"

#include <cmath>
#include <doctest/doctest.h>
#include <thread>

#include "base/child_process.h"
#include "base/machine.h"

namespace hasten {
namespace {

// Format of proc(5): user nice system idle iowait irq softirq steal guest guest_nice.
constexpr const char* kStat =
    "cpu  10000 200 3000 80000 500 40 60 700 5 6\n"
    "cpu0 5000 100 1500 40000 250 20 30 350 0 0\n"
    "cpu1 5000 100 1500 40000 250 20 30 350 0 0\n"
    "intr 12345 0 9\n"
    "ctxt 99\n";

TEST_CASE("parse_activity: seconds of all processors together") {
  const MachineActivity a = parse_activity(kStat, "1.75 0.50 0.25 2/345 6789\n", 100);
  CHECK(a.busy_s == doctest::Approx(133));
  CHECK(a.idle_s == doctest::Approx(805));
  CHECK(a.stolen_s == doctest::Approx(7));
  CHECK(a.load_average == doctest::Approx(1.75));
  CHECK(a.processors == 2);
}

TEST_CASE("parse_activity: text that is something else is unknown") {
  CHECK(parse_activity("", "", 100).processors == 0);
  CHECK(parse_activity("cpu  1 2 3\ncpu0 1 2 3\n", "1.0", 100).processors == 0);
  CHECK(parse_activity(kStat, "rubbish", 100).load_average == 0);
}

TEST_CASE("read_activity: Linux says what its processors did") {
  const MachineActivity a = read_activity();
  CHECK(a.processors >= 1);
  CHECK(a.busy_s > 0);
}

MachineActivity after(double busy_s, double idle_s, double stolen_s) {
  return {.busy_s = 100 + busy_s,
          .idle_s = 200 + idle_s,
          .stolen_s = 5 + stolen_s,
          .load_average = 1.8,
          .processors = 2};
}

TEST_CASE("noise_warning: speaks when others took a part of the machine, and says what to do") {
  const MachineActivity before = after(0, 0, 0);
  // 20 s of two processors, 8 s of our own.
  CHECK_FALSE(noise_warning(before, after(8.5, 11.5, 0.1), 8));
  CHECK(noise_warning(before, after(15.4, 4.6, 0), 8) ==
        "other programs used 37 % of the processor time while candidates were measured (load "
        "average 1.8 on 2 processors); close them, or give the race more time");
  CHECK(noise_warning(before, after(8, 11.4, 0.6), 8) ==
        "the hypervisor took 3 % of the processor time away while candidates were measured; "
        "measure on a machine of its own, or give the race more time");
}

TEST_CASE("noise_warning: nothing to say about what is unknown or too short") {
  const MachineActivity before = after(0, 0, 0);
  CHECK_FALSE(noise_warning(MachineActivity{}, after(20, 0, 0), 0));
  CHECK_FALSE(noise_warning(before, after(0.9, 0, 0), 0));
  CHECK_FALSE(noise_warning(before, after(8, 12, 0), 9));  // Our own ticks were rounded up.
}

ActivityReading reading(double busy_s, double idle_s, double stolen_s, double own_cpu_s) {
  return {.machine = after(busy_s, idle_s, stolen_s), .own_cpu_s = 50 + own_cpu_s};
}

TEST_CASE("noise_warning: about all stretches together, and not about what was between them") {
  ActivityReading sum;
  CHECK_FALSE(noise_warning(sum));
  // Each is too short to say anything of; between them a compiler had the machine.
  add_stretch(sum, reading(0, 0, 0, 0), reading(0.4, 0.4, 0, 0.4));
  CHECK_FALSE(noise_warning(sum));
  add_stretch(sum, reading(90, 1, 0, 1), reading(90.4, 1.4, 0, 1.4));
  CHECK_FALSE(noise_warning(sum));
  add_stretch(sum, reading(100, 2, 0, 2), reading(100.4, 2, 0, 2));
  CHECK(noise_warning(sum) ==
        "other programs used 20 % of the processor time while candidates were measured (load "
        "average 1.8 on 2 processors); close them, or give the race more time");
  add_stretch(sum, ActivityReading{}, reading(500, 0, 0, 0));  // Unknown where it began.
  CHECK(noise_warning(sum)->starts_with("other programs used 20 %"));
}

TEST_CASE("is_spoiled: a round in which others took more than a twentieth of the processors") {
  const ActivityReading before = reading(0, 0, 0, 0);
  // A second of two processors, 0.9 s of it our own.
  CHECK_FALSE(is_spoiled(before, reading(0.9, 1.1, 0, 0.9)));
  CHECK_FALSE(is_spoiled(before, reading(1.01, 0.99, 0, 0.9)));
  CHECK(is_spoiled(before, reading(1.03, 0.97, 0, 0.9)));
  CHECK(is_spoiled(before, reading(0.9, 0.97, 0.13, 0.9)));  // The hypervisor is one of them.
  CHECK_FALSE(is_spoiled(before, reading(0.8, 1.2, 0, 0.9)));
}

TEST_CASE("is_spoiled: in a short round, ticks that are counted late are nobody's work") {
  const ActivityReading before = reading(0, 0, 0, 0);
  // 60 ms of two processors; our 53 ms were counted as 70.
  CHECK_FALSE(is_spoiled(before, reading(0.07, 0.05, 0, 0.053)));
  CHECK(is_spoiled(before, reading(0.11, 0.01, 0, 0.053)));
}

TEST_CASE("is_spoiled: where nothing is known nothing is spoiled") {
  const ActivityReading unknown{.machine = {}, .own_cpu_s = 1};
  CHECK_FALSE(is_spoiled(unknown, reading(9, 0, 9, 0)));
  CHECK_FALSE(is_spoiled(reading(0, 0, 0, 0), unknown));
}

TEST_CASE("activity_probe: the work of a child that takes turns is our own") {
  Spawner spawner;
  Result<ChildProcess> busy = spawner.start({.command = {"sh", "-c", "while :; do :; done"}});
  REQUIRE(busy);
  const ActivityProbe probe = activity_probe({busy->pid()});
  const double first = *process_cpu_seconds(busy->pid());
  const double own = probe().own_cpu_s;
  CHECK(own >= first);
  while (process_cpu_seconds(busy->pid()).value_or(HUGE_VAL) < first + 0.05) {
    std::this_thread::yield();
  }
  busy->stop();
  CHECK(probe().own_cpu_s >= own + 0.04);
  // What it has done stays counted when it has ended.
  const double all = probe().own_cpu_s;
  busy->kill_group();
  CHECK(probe().own_cpu_s >= all - 0.001);
  CHECK(probe().machine.processors >= 1);
}

}  // namespace
}  // namespace hasten
