// SPDX-License-Identifier: Apache-2.0
// Was the machine busy with other things while something was measured? Asked of a whole
// race (a warning) and of each of its rounds (which is measured again).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

// What all processors together have done since the machine started, in seconds.
struct MachineActivity {
  double busy_s = 0, idle_s = 0;
  double stolen_s = 0;      // Ready to run, but the hypervisor ran another machine.
  double load_average = 0;  // Over one minute: who runs or waits for a processor.
  size_t processors = 0;    // 0: unknown.
};

// From the text of /proc/stat and /proc/loadavg. Unreadable text gives unknown.
MachineActivity parse_activity(std::string_view stat, std::string_view loadavg,
                               double ticks_per_second);
MachineActivity read_activity();

// One sentence with its remedy when others took enough of the machine between `before`
// and `after` to disturb what was measured; `own_cpu_s` is the processor time of this
// process and its children in between. None: quiet, unknown, or too short to say.
std::optional<std::string> noise_warning(const MachineActivity& before,
                                         const MachineActivity& after, double own_cpu_s);

struct ActivityReading {
  MachineActivity machine;
  double own_cpu_s = 0;  // Of this process, of its children that ended, of those that live.
};
using ActivityProbe = std::function<ActivityReading()>;

// Reads both when called; about 50 microseconds. `children` are the processes that take turns.
ActivityProbe activity_probe(std::vector<int> children);

// Adds what happened between two readings to a sum of such stretches, which begins empty.
void add_stretch(ActivityReading& sum, const ActivityReading& before, const ActivityReading& after);
// The warning about all stretches of a sum together.
std::optional<std::string> noise_warning(const ActivityReading& sum);

// Others took more of the processors in between than our own work can look like.
bool is_spoiled(const ActivityReading& before, const ActivityReading& after);

}  // namespace hasten
