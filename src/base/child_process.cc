// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/child_process_impl.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/process_table.h"
#include "base/text.h"

namespace hasten {
namespace fs = std::filesystem;
using std::chrono::nanoseconds;
namespace {

// A guard that was asked to end needs a scan of /proc and a few kills.
constexpr nanoseconds kGuardTime = std::chrono::seconds(2);
constexpr nanoseconds kStopTime = std::chrono::seconds(1);
// Between two looks at something that no descriptor tells.
constexpr nanoseconds kLookAgain = std::chrono::milliseconds(2);

timespec to_timespec(nanoseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000'000), time.count() % 1'000'000'000};
}

bool stands(char state) { return state == 'T' || state == 't' || state == 'Z' || state == 'X'; }

std::string lower_first(std::string text) {
  // "Segmentation fault" stands inside a sentence; "CPU time limit" does not change.
  if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z') text[0] |= 0x20;
  return text;
}

}  // namespace

std::string ExitStatus::describe() const {
  if (!known()) return "exit status unknown";
  if (signal == 0) return format("exit code {}", code);
  const char* name = ::sigabbrev_np(signal);
  const char* words = ::sigdescr_np(signal);
  if (!name || !words) return format("killed by signal {}", signal);
  return format("killed by SIG{} ({})", name, lower_first(words));
}

ChildProcess::Impl::Impl(int child, const ChildOptions& options, uint64_t log_size)
    : pid(child),
      // Linux 5.3; without it the waits below look again and again.
      pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))),
      supervised(options.supervised),
      log(options.log),
      log_start(log_size) {}

bool ChildProcess::Impl::has_ended() const {
  siginfo_t info{};
  // WNOWAIT: the id stays taken, so that the group can still be killed by it.
  const int failed = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return failed != 0 || info.si_pid == pid;
}

ExitStatus ChildProcess::Impl::reap() {
  ::kill(-pid, SIGKILL);
  int word = 0;
  pid_t got;
  do {
    got = ::waitpid(pid, &word, 0);
  } while (got < 0 && errno == EINTR);
  // A host that ignores SIGCHLD, or waits for any child, leaves us no status.
  if (got != pid) return *(status = ExitStatus{.code = -1});
  status = WIFSIGNALED(word) ? ExitStatus{.signal = WTERMSIG(word)}
                             : ExitStatus{.code = WEXITSTATUS(word)};
  return *status;
}

void ChildProcess::Impl::pause(nanoseconds time, int also) const {
  pollfd waited[] = {{pidfd.get(), POLLIN, 0}, {also, POLLIN, 0}};
  if (!pidfd.is_open()) time = std::min(time, kLookAgain);
  const timespec limit = to_timespec(std::max(time, nanoseconds(0)));
  // A negative descriptor is passed over. EINTR is one more look for the caller.
  ::ppoll(waited, 2, &limit, nullptr);
}

ChildProcess::ChildProcess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChildProcess::ChildProcess(ChildProcess&&) noexcept = default;
ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    if (impl_) kill_group();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
ChildProcess::~ChildProcess() {
  if (impl_) kill_group();
}

int ChildProcess::pid() const { return impl_->pid; }
int ChildProcess::end_signal() const { return impl_->pidfd.get(); }

std::optional<ExitStatus> ChildProcess::poll() {
  if (!impl_->status && impl_->has_ended()) impl_->reap();
  return impl_->status;
}

std::optional<ExitStatus> ChildProcess::wait_for(nanoseconds timeout) {
  const nanoseconds end = real_clock().now() + timeout;
  while (!poll()) {
    const nanoseconds left = end - real_clock().now();
    if (left <= nanoseconds(0)) break;
    impl_->pause(left);
  }
  return impl_->status;
}

ExitStatus ChildProcess::kill_group() {
  if (impl_->status) return *impl_->status;
  if (impl_->supervised) {
    // The guard reaches descendants that left the group; a signal to the group does not.
    ::kill(-impl_->pid, SIGCONT);
    ::kill(impl_->pid, SIGTERM);
    if (const auto ended = wait_for(kGuardTime)) return *ended;
  }
  ::kill(-impl_->pid, SIGCONT);
  ::kill(-impl_->pid, SIGKILL);
  return impl_->reap();
}

void ChildProcess::stop() {
  if (poll()) return;
  ::kill(-impl_->pid, SIGSTOP);
  // A guard that stands could not do its work if we died now.
  if (impl_->supervised) ::kill(impl_->pid, SIGCONT);
  const nanoseconds end = real_clock().now() + kStopTime;
  while (!impl_->stands() && real_clock().now() < end) {
    impl_->pause(std::chrono::microseconds(100));
    if (impl_->has_ended()) return;
  }
}

bool ChildProcess::Impl::stands() const {
  if (!supervised) {
    const auto facts = process_facts(pid);
    return !facts || hasten::stands(facts->state);
  }
  const std::vector<ProcessFacts> members = group_and_descendants(pid);
  return std::all_of(members.begin(), members.end(), [&](const ProcessFacts& facts) {
    return facts.pid == pid || facts.group != pid || hasten::stands(facts.state);
  });
}

void ChildProcess::resume() {
  if (!impl_->status) ::kill(-impl_->pid, SIGCONT);
}

uint64_t ChildProcess::resident_bytes() const {
  if (impl_->status) return 0;
  uint64_t total = 0;
  for (const ProcessFacts& facts : group_and_descendants(impl_->pid)) {
    total += facts.resident_bytes;
  }
  return total;
}

std::string ChildProcess::log_tail(size_t limit) const {
  const auto file = open_file(impl_->log, O_RDONLY);
  struct stat facts {};
  if (impl_->log.empty() || !file || ::fstat(file->get(), &facts) != 0) return {};
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size <= impl_->log_start) return {};
  const uint64_t start = std::max(impl_->log_start, size - std::min<uint64_t>(limit, size));
  std::string text(size - start, '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), static_cast<off_t>(start));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  if (start > impl_->log_start) {
    // Half a line says less than none, unless it is all there is.
    const size_t line = text.find('\n');
    if (line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  }
  // Progress bars, colours and zero bytes have no place in a report.
  std::erase_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; });
  return valid_utf8(text);
}

}  // namespace hasten
