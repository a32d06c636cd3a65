// SPDX-License-Identifier: Apache-2.0
#include "record/environment.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>

namespace hasten {
namespace {

// What a compiler emits when it is told to build for this processor. The many other
// flags (virtualisation, mitigations, counters) differ between machines that run the
// same code, and would make an artifact look foreign where it is not.
bool matters_to_compiled_code(std::string_view flag) {
  constexpr std::array kPrefixes = {"sse", "ssse3", "pni", "avx", "amx",  "fma",
                                    "bmi", "f16c",  "sve", "sme", "asimd"};
  constexpr std::array kWhole = {"abm",        "popcnt", "movbe",   "aes",   "vaes", "pclmulqdq",
                                 "vpclmulqdq", "sha_ni", "gfni",    "adx",   "fp",   "fphp",
                                 "bf16",       "i8mm",   "atomics", "crc32", "sha1", "sha2"};
  const auto starts = [&](std::string_view prefix) { return flag.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), starts) ||
         std::find(kWhole.begin(), kWhole.end(), flag) != kWhole.end();
}

std::string first_line(std::string_view text) {
  return std::string(trim(text.substr(0, text.find('\n'))));
}

std::string content_or_nothing(const char* path) {
  auto content = read_file(path);
  return content ? *std::move(content) : std::string();
}

std::vector<std::string> texts(const Json& json) {
  std::vector<std::string> out;
  for (const Json& item : json.items()) out.push_back(item.as_string());
  return out;
}

}  // namespace

CpuInfo parse_cpuinfo(std::string_view text) {
  CpuInfo info;
  std::string implementer, part;
  for (const std::string& line : split(text, '\n')) {
    const size_t colon = line.find(':');
    // Processors are separated by an empty line; all of them look alike here.
    if (trim(line).empty() && !info.instruction_sets.empty()) break;
    if (colon == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    const std::string_view value = trim(std::string_view(line).substr(colon + 1));
    if (key == "model name") info.model = value;
    if (key == "CPU implementer") implementer = value;
    if (key == "CPU part") part = value;
    if (key != "flags" && key != "Features") continue;
    for (std::string& flag : split(value, ' ')) {
      if (matters_to_compiled_code(flag)) info.instruction_sets.push_back(std::move(flag));
    }
  }
  if (info.model.empty() && !part.empty()) info.model = "Arm " + implementer + "/" + part;
  std::sort(info.instruction_sets.begin(), info.instruction_sets.end());
  return info;
}

Environment Environment::of_this_machine() {
  CpuInfo cpu = parse_cpuinfo(content_or_nothing("/proc/cpuinfo"));
  utsname names{};
  uname(&names);
  Environment here;
  here.hasten_version = kVersion;
  here.cpu_model = std::move(cpu.model);
  here.kernel = std::string(names.sysname) + " " + names.release;
  here.architecture = names.machine;
  here.instruction_sets = std::move(cpu.instruction_sets);
  here.cpus = hasten::usable_cpus();
  here.memory_bytes = hasten::available_memory_bytes();
  here.load_average = hasten::load_average();
  here.governor =
      first_line(content_or_nothing("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  here.timestamp = utc_timestamp();
  return here;
}

Json Environment::to_json() const {
  Json sets = Json::array();
  for (const std::string& name : instruction_sets) sets.push(name);
  return Json::object({{"hasten_version", hasten_version},
                       {"cpu_model", cpu_model},
                       {"architecture", architecture},
                       {"kernel", kernel},
                       {"instruction_sets", std::move(sets)},
                       {"cpus", cpus},
                       {"memory_bytes", memory_bytes},
                       {"load_average", load_average},
                       {"governor", governor.empty() ? Json() : Json(governor)},
                       {"timestamp", timestamp}});
}

Environment Environment::from_json(const Json& json) {
  Environment there;
  there.hasten_version = json["hasten_version"].as_string();
  there.cpu_model = json["cpu_model"].as_string();
  there.kernel = json["kernel"].as_string();
  there.architecture = json["architecture"].as_string();
  there.instruction_sets = texts(json["instruction_sets"]);
  there.cpus = static_cast<int>(json["cpus"].as_int());
  there.memory_bytes = static_cast<uint64_t>(json["memory_bytes"].as_int());
  there.load_average = json["load_average"].as_double();
  there.governor = json["governor"].as_string();
  there.timestamp = json["timestamp"].as_string();
  return there;
}

}  // namespace hasten
