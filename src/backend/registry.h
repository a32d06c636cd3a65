// SPDX-License-Identifier: Apache-2.0
// Which backends there are. A backend is either a library, hasten_NAME.so, or a
// program that speaks the worker protocol, described by hasten_NAME.json:
//   {"name": "...", "command": ["{python}", "-m", "hasten.worker"], "describe": {...}}
// Names come from file names: nothing is loaded before it is needed.
#pragma once

#include <hasten/result.h>

#include "base/json.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hasten {

struct BackendEntry {
  std::string name;
  std::filesystem::path library;     // Empty for a program.
  std::vector<std::string> command;  // Empty for a library.
  Json describe;                     // Of a program: from the file.
};

class Registry {
 public:
  // `first`: files or folders given by the user; then HASTEN_PLUGIN_PATH (':'), then
  // plugins/ beside our binary, then <prefix>/lib/hasten/plugins. The first of a name wins.
  // A name in `first` that does not exist is an error; an unreadable folder is not.
  static Result<Registry> scan(const std::vector<std::filesystem::path>& first = {});

  const std::vector<BackendEntry>& entries() const { return entries_; }  // Sorted by name.
  // Unknown: kInvalidArgument, with the known names and the closest one.
  Result<BackendEntry> find(const std::string& name) const;

 private:
  std::vector<BackendEntry> entries_;
};

// The interpreter for compilers and Python-hosted backends: HASTEN_PYTHON, else the one that runs
// this process (prefer_python), else the one that set-up made (recorded at build time), else that
// of VIRTUAL_ENV, else python3 of PATH; and the folder that holds the package `hasten` (for
// PYTHONPATH). Errors carry the remedy.
Result<std::filesystem::path> find_python();
void prefer_python(std::filesystem::path python);  // Once, before anything else is called.
std::filesystem::path python_package_folder();

}  // namespace hasten
