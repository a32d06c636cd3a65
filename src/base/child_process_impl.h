// SPDX-License-Identifier: Apache-2.0
// What ChildProcess and Spawner share.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/child_process.h"
#include "base/file_descriptor.h"

namespace hasten {

struct ChildProcess::Impl {
  Impl(int child, const ChildOptions& options, uint64_t log_size);

  bool has_ended() const;
  bool stands() const;
  ExitStatus reap();  // Kills what is left of the group; waits for the child itself.
  // Returns when it ends, when `also` can be read, or after `time`; perhaps earlier.
  void pause(std::chrono::nanoseconds time, int also = -1) const;

  int pid;
  FileDescriptor pidfd;  // Readable when the child has ended.
  bool supervised;
  std::filesystem::path log;
  uint64_t log_start;  // Its size when the child began.
  std::optional<ExitStatus> status;
};

}  // namespace hasten
