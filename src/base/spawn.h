// SPDX-License-Identifier: Apache-2.0
// fork and exec of one prepared child.
#pragma once

#include <hasten/result.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/file_descriptor.h"

namespace hasten {

// Everything that needs memory or locks, made before the fork: between fork and exec
// only async-signal-safe calls are allowed.
struct SpawnPlan {
  std::string name;                      // The program as the caller named it.
  std::string program;                   // Its path.
  std::vector<std::string> arguments;    // argv, the name included.
  std::vector<std::string> environment;  // "KEY=value".
  std::filesystem::path folder;
  FileDescriptor input;   // /dev/null
  FileDescriptor output;  // The log, or /dev/null.
  std::vector<int> inherited;
};

// Finds the program and opens the log. Fails with kUnavailable when there is no such program.
Result<SpawnPlan> plan_spawn(const ChildOptions& options);

// The process id of the child, which is past its exec. The child dies with the calling thread.
Result<int> spawn(const SpawnPlan& plan);

}  // namespace hasten
