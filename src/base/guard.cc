// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "base/child_process.h"
#include "base/process_table.h"

namespace hasten {
namespace {

// Kills all that descends from this process. Safe against reused process ids: a child's
// id stays its own until we reap it, and what a dead child leaves becomes our child.
void kill_descendants() {
  while (true) {
    bool any = false;
    for (const ProcessFacts& facts : all_processes()) {
      if (facts.parent != ::getpid()) continue;
      any = true;
      ::kill(facts.pid, SIGKILL);
      ::waitpid(facts.pid, nullptr, 0);
    }
    if (!any) return;
  }
}

[[noreturn]] void run_command(const std::vector<std::string>& command, pid_t guard) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  // stderr is the child's log here, the only place where the reason can be read.
  ::dprintf(2, "cannot start '%s': %s\n", arguments[0], std::strerror(errno));
  ::_exit(127);
}

// Ends as the command did, so that the host sees the true status.
int leave(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  return 128 + signal;
}

}  // namespace

int run_guard(const std::vector<std::string>& command) {
  if (command.empty()) throw std::logic_error("a guard needs a command");
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&awaited, signal);
  ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
  ::setpgid(0, 0);
  // Descendants whose parents die come to us, also those that left the group (setsid).
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Until here the host's SIGKILL was set; so there is no moment without one of the two.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);

  const pid_t guard = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return 127;
  if (child == 0) run_command(command, guard);
  // The command's ends of pipes and sockets must close when the command ends.
  ::close_range(3, ~0u, 0);
  while (true) {
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal < 0) continue;  // EINTR: stopped and continued.
    if (signal != SIGCHLD) {
      kill_descendants();
      // What joined the group without descending from us, and this process itself.
      ::kill(0, SIGKILL);
    }
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != child) continue;
      kill_descendants();
      return leave(status);
    }
  }
}

}  // namespace hasten
