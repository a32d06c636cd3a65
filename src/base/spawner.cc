// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

#include "base/child_process_impl.h"
#include "base/clock.h"
#include "base/memory_watch.h"
#include "base/spawn.h"
#include "base/text.h"

namespace hasten {
using std::chrono::nanoseconds;
namespace {

uint64_t size_of(const FileDescriptor& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)
             ? static_cast<uint64_t>(facts.st_size)
             : 0;
}

Error with_tail(Error error, const ChildProcess& child) {
  const std::string tail(trim(child.log_tail()));
  if (!tail.empty()) error.message += "; the last it said:\n" + tail;
  return error;
}

}  // namespace

// The thread that forks. It lives as long as the Spawner: its end would end the children.
struct Spawner::Impl {
  struct Request {
    const SpawnPlan* plan;
    std::optional<Result<int>> answer;
  };

  std::mutex mutex;
  std::condition_variable asked, answered;
  std::deque<Request*> requests;  // Borrowed from the callers, who wait.
  bool ends = false;
  std::thread thread;

  void serve() {
    // Signals to the process are the host's own threads' business.
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex);
    while (true) {
      asked.wait(lock, [&] { return ends || !requests.empty(); });
      if (requests.empty()) return;
      Request* request = requests.front();
      requests.pop_front();
      lock.unlock();
      Result<int> pid = spawn(*request->plan);
      lock.lock();
      request->answer = std::move(pid);
      answered.notify_all();
    }
  }
};

Spawner::Spawner() : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->serve(); });
}

Spawner::~Spawner() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->asked.notify_one();
  impl_->thread.join();
}

Result<ChildProcess> Spawner::start(ChildOptions options) {
  HASTEN_TRY(const SpawnPlan plan, plan_spawn(options));
  const uint64_t log_size = size_of(plan.output);
  Impl::Request request{&plan, {}};
  {
    std::unique_lock lock(impl_->mutex);
    impl_->requests.push_back(&request);
    impl_->asked.notify_one();
    impl_->answered.wait(lock, [&] { return request.answer.has_value(); });
  }
  HASTEN_TRY(const int pid, *std::move(request.answer));
  return ChildProcess(std::make_unique<ChildProcess::Impl>(pid, options, log_size));
}

namespace {

// Becomes readable when a stop is requested, so that the wait for a child sees it at once.
class StopSignal {
 public:
  explicit StopSignal(std::stop_token token)
      : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        callback_(std::move(token), Raise{event_.get()}) {}
  int descriptor() const { return event_.get(); }

 private:
  struct Raise {
    int event;
    void operator()() const { ::eventfd_write(event, 1); }
  };
  FileDescriptor event_;  // Outlives the callback, which writes to it.
  std::stop_callback<Raise> callback_;
};

}  // namespace

Status Spawner::run(ChildOptions options, const RunLimits& limits) {
  const std::string name = options.command.empty() ? "" : options.command.front();
  const StopSignal stop(limits.stop);
  const auto cancelled = [&] {
    return Error{Code::kCancelled, format("'{}' was cancelled", name)};
  };
  if (limits.stop.stop_requested()) return cancelled();
  HASTEN_TRY(ChildProcess child, start(std::move(options)));
  const nanoseconds begin = real_clock().now();
  MemoryWatch memory(limits.memory_bytes);
  const auto end_with = [&](Error error) {
    child.kill_group();
    return with_tail(std::move(error), child);
  };
  while (!child.poll()) {
    if (limits.stop.stop_requested()) {
      child.kill_group();
      return cancelled();
    }
    const nanoseconds left = limits.timeout - (real_clock().now() - begin);
    if (left <= nanoseconds(0)) {
      return end_with({Code::kTimedOut, format("'{}' had not ended after {} and was killed", name,
                                               human_duration(limits.timeout))});
    }
    if (const auto resident = memory.excess(child)) {
      return end_with({Code::kOutOfMemory,
                       format("'{}' took {} of memory, more than its limit of {}, and was killed",
                              name, human_size(*resident), human_size(limits.memory_bytes))});
    }
    child.impl_->pause(std::min(left, memory.until_next()), stop.descriptor());
  }
  const ExitStatus status = *child.poll();
  if (status.ok() || !status.known()) return {};
  return with_tail({status.signal ? Code::kCrashed : Code::kBuildFailed,
                    format("'{}' failed: {}", name, status.describe())},
                   child);
}

}  // namespace hasten
