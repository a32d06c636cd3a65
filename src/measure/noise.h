// SPDX-License-Identifier: Apache-2.0
// Was the machine busy with other things while something was measured?
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace hasten
