// SPDX-License-Identifier: Apache-2.0
#include "measure/noise.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"

namespace hasten {
namespace {

// Below these shares the disturbance drowns in what the intervals show anyway.
constexpr double kShareOfOthers = 0.05;
constexpr double kShareStolen = 0.01;
// The kernel counts in ticks of 10 ms on each processor: less than this is mostly rounding.
constexpr double kShortest_s = 1.0;
// Over a round that is shorter than that: user and system time are each off by a tick, in the
// direction of somebody else's work at worst.
constexpr double kCounting_s = 0.02;

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> list = split(line, ' ');
  std::erase(list, "");
  return list;
}

// Percent, as a reader wants it.
std::string percent(double share) { return format("{:.0f} %", 100 * share); }

}  // namespace

MachineActivity parse_activity(std::string_view stat, std::string_view loadavg,
                               double ticks_per_second) {
  MachineActivity activity;
  std::vector<double> ticks;
  size_t processors = 0;
  for (const std::string& line : split(stat, '\n')) {
    if (line.starts_with("cpu ")) {
      for (const std::string& word : words(line.substr(4))) {
        ticks.push_back(parse_number(word).value_or(0));
      }
    } else if (line.starts_with("cpu")) {
      ++processors;
    }
  }
  // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted under user.
  if (ticks.size() < 8 || ticks_per_second <= 0) return {};
  activity.busy_s = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / ticks_per_second;
  activity.idle_s = (ticks[3] + ticks[4]) / ticks_per_second;
  activity.stolen_s = ticks[7] / ticks_per_second;
  activity.load_average = parse_number(loadavg.substr(0, loadavg.find(' '))).value_or(0);
  activity.processors = processors;
  return activity;
}

MachineActivity read_activity() {
  const Result<std::string> stat = read_file("/proc/stat");
  const Result<std::string> loadavg = read_file("/proc/loadavg");
  if (!stat || !loadavg) return {};
  return parse_activity(*stat, *loadavg, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

std::optional<std::string> noise_warning(const MachineActivity& before,
                                         const MachineActivity& after, double own_cpu_s) {
  if (before.processors == 0 || after.processors == 0) return std::nullopt;
  const double busy = after.busy_s - before.busy_s;
  const double stolen = after.stolen_s - before.stolen_s;
  const double all = busy + stolen + after.idle_s - before.idle_s;
  if (all < kShortest_s) return std::nullopt;
  if (stolen > kShareStolen * all) {
    return format(
        "the hypervisor took {} of the processor time away while candidates were measured; "
        "measure on a machine of its own, or give the race more time",
        percent(stolen / all));
  }
  const double others = std::max(0.0, busy - own_cpu_s);
  if (others > kShareOfOthers * all) {
    return format(
        "other programs used {} of the processor time while candidates were measured (load "
        "average {:.1f} on {} processors); close them, or give the race more time",
        percent(others / all), after.load_average, after.processors);
  }
  return std::nullopt;
}

void add_stretch(ActivityReading& sum, const ActivityReading& before,
                 const ActivityReading& after) {
  if (before.machine.processors == 0 || after.machine.processors == 0) return;
  sum.machine.busy_s += after.machine.busy_s - before.machine.busy_s;
  sum.machine.idle_s += after.machine.idle_s - before.machine.idle_s;
  sum.machine.stolen_s += after.machine.stolen_s - before.machine.stolen_s;
  sum.machine.load_average = after.machine.load_average;
  sum.machine.processors = after.machine.processors;
  sum.own_cpu_s += after.own_cpu_s - before.own_cpu_s;
}

std::optional<std::string> noise_warning(const ActivityReading& sum) {
  const MachineActivity nothing{.processors = sum.machine.processors};
  return noise_warning(nothing, sum.machine, sum.own_cpu_s);
}

ActivityProbe activity_probe(std::vector<int> children) {
  // The clocks of the processes rather than /proc/PID/stat: no file to read, nanoseconds rather
  // than ticks, and one call each. Children that take turns have none of their own; one that
  // ends moves from its clock into the sum of those that ended. A stopped child keeps its clock.
  return [children = std::move(children)] {
    ActivityReading reading{.machine = read_activity(), .own_cpu_s = consumed_cpu_seconds()};
    for (const int child : children) reading.own_cpu_s += process_cpu_seconds(child).value_or(0);
    return reading;
  };
}

bool is_spoiled(const ActivityReading& before, const ActivityReading& after) {
  if (before.machine.processors == 0 || after.machine.processors == 0) return false;
  const double busy = after.machine.busy_s - before.machine.busy_s;
  const double stolen = after.machine.stolen_s - before.machine.stolen_s;
  const double all = busy + stolen + after.machine.idle_s - before.machine.idle_s;
  const double others = std::max(0.0, busy - (after.own_cpu_s - before.own_cpu_s)) + stolen;
  return others > kShareOfOthers * all + kCounting_s;
}

}  // namespace hasten
