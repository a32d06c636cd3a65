// SPDX-License-Identifier: Apache-2.0
// Child processes that cannot outlive us, hang us or fill our memory.
//
// Each child leads its own process group and gets SIGKILL when this process dies
// (PR_SET_PDEATHSIG). Linux sends that signal when the *thread* that forked ends,
// so every fork happens on one thread that lives as long as the Spawner.
// A child with `supervised` set runs under a small guard process (`hasten guard`)
// that kills all its descendants, in whatever group they are, when this process dies;
// compilers that start compilers need it. Children write no core files, and the
// kernel's out-of-memory killer is told to prefer them to us.
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
  // Program and arguments; no shell. Searched in the child's PATH; a path with a '/' is
  // relative to our working folder, not to `folder`.
  std::vector<std::string> command{};
  std::map<std::string, std::string> environment{};  // Added to ours.
  std::filesystem::path folder{};                    // Working folder; empty: ours.
  // stdout and stderr go here, appended; empty: nowhere. stdin is empty.
  std::filesystem::path log{};
  std::vector<int> inherited{};  // Become fd 3, 4, ... in the child; all others are closed.
  bool supervised = false;
};

struct ExitStatus {
  int code = 0;    // When it exited; -1: unknown, the host ignores SIGCHLD.
  int signal = 0;  // When a signal ended it.
  bool ok() const { return code == 0 && signal == 0; }
  bool known() const { return code >= 0; }
  std::string describe() const;  // "exit code 3", "killed by SIGSEGV (segmentation fault)"
};

class Spawner;

class ChildProcess {
 public:
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  ~ChildProcess();  // Kills the group and reaps it.

  int pid() const;
  // A descriptor to poll for reading: it becomes readable when the child has ended. -1 before
  // Linux 5.3, which has none.
  int end_signal() const;
  // None: still running. When it has ended, so has the rest of its group.
  std::optional<ExitStatus> poll();
  // As poll(), but waits up to `timeout` for the end.
  std::optional<ExitStatus> wait_for(std::chrono::nanoseconds timeout);
  ExitStatus kill_group();          // SIGCONT, SIGKILL, reap.
  void stop();                      // SIGSTOP to the group, and wait until it stands (1 s at most).
  void resume();                    // SIGCONT to the group.
  uint64_t resident_bytes() const;  // Of it and its descendants, from /proc. 0: unknown.
  // The last `limit` bytes that were logged since its start, as valid UTF-8 lines.
  std::string log_tail(size_t limit = 4096) const;

 private:
  friend class Spawner;
  struct Impl;
  explicit ChildProcess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct RunLimits {
  std::chrono::nanoseconds timeout{std::chrono::minutes(10)};
  uint64_t memory_bytes = 0;  // Resident, whole group; 0: no limit.
  std::stop_token stop{};
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
  // with the tail of the log in the message. An unknown one passes: what the child leaves
  // behind tells more than a host that ignores SIGCHLD can know.
  Status run(ChildOptions options, const RunLimits& limits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `hasten guard COMMAND...`: the supervisor described above. Returns the exit code of the
// command, whose first word is a path; dies by the signal that the command died by.
// The calling process must have one thread and be nothing but the guard.
int run_guard(const std::vector<std::string>& command);

}  // namespace hasten
