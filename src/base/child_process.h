// SPDX-License-Identifier: Apache-2.0
// Child processes that cannot outlive us, hang us or fill our memory.
//
// Each child leads its own process group and gets SIGKILL when this process dies
// (PR_SET_PDEATHSIG). Linux sends that signal when the *thread* that forked ends,
// so every fork happens on one thread that lives as long as the Spawner.
// A child with `supervised` set runs under a small guard process (`hasten guard`)
// that kills the whole group, grandchildren included, when this process dies;
// compilers that start compilers need it.
#pragma once

#include <hasten/result.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

struct ChildOptions {
  std::vector<std::string> command;               // Program and arguments; no shell.
  std::map<std::string, std::string> environment; // Added to ours.
  std::filesystem::path folder;                   // Working folder; empty: ours.
  std::filesystem::path log;                      // stdout and stderr go here, appended.
  std::vector<int> inherited;                     // Become fd 3, 4, ... in the child.
  bool supervised = false;
};

struct ExitStatus {
  int code = 0;                   // When it exited.
  int signal = 0;                 // When a signal ended it.
  bool ok() const { return code == 0 && signal == 0; }
  std::string describe() const;   // "exit code 3", "killed by SIGSEGV (segmentation fault)"
};

class Spawner;

class ChildProcess {
 public:
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  ~ChildProcess();                // Kills the group and reaps it.

  int pid() const;
  std::optional<ExitStatus> poll();              // None: still running.
  ExitStatus kill_group();                       // SIGCONT, SIGKILL, reap.
  void stop();                                   // SIGSTOP to the group, and wait until it stands.
  void resume();                                 // SIGCONT to the group.
  uint64_t resident_bytes() const;               // Of the group, from /proc. 0: unknown.
  // The last `limit` bytes of its log, as valid UTF-8 lines.
  std::string log_tail(size_t limit = 4096) const;

 private:
  friend class Spawner;
  struct Impl;
  explicit ChildProcess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct RunLimits {
  std::chrono::nanoseconds timeout{std::chrono::minutes(10)};
  uint64_t memory_bytes = 0;      // Resident, whole group; 0: no limit.
  std::stop_token stop;
};

// Must outlive its children.
class Spawner {
 public:
  Spawner();
  Spawner(const Spawner&) = delete;
  ~Spawner();

  Result<ChildProcess> start(ChildOptions options);  // From any thread.
  // Waits within the limits. kTimedOut, kOutOfMemory or kCancelled after killing the
  // group; an exit status that is not ok is kCrashed (signal) or kBuildFailed (code),
  // with the tail of the log in the message.
  Status run(ChildOptions options, const RunLimits& limits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `hasten guard PID COMMAND...`: the supervisor described above. Returns its exit code.
int run_guard(const std::vector<std::string>& command);

}  // namespace hasten
