// SPDX-License-Identifier: Apache-2.0
// A worker process and the line to it: starts it, exchanges messages within limits,
// and knows why it ended.
#pragma once

#include "backend/shared_memory.h"
#include "backend/wire.h"
#include "backend/worker.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/memory_watch.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hasten {

class WorkerChannel {
 public:
  // Waits for the worker's hello.
  static Result<WorkerChannel> open(Spawner& spawner, WorkerOptions options);

  // One request, one reply. `op` of the request names it in messages. An error that the
  // worker replies is returned; trouble with the worker itself ends it, and is returned
  // from then on.
  Result<Json> exchange(const Json& request, std::chrono::nanoseconds timeout);
  // Ends the worker because of what it sent.
  Error refuse(std::string_view op, const Error& reason);
  Error end(Error why);

  SharedMemory& inputs() { return in_; }
  const SharedMemory& outputs() const { return out_; }
  const WorkerOptions& options() const { return options_; }

  void stop();
  void resume();
  bool alive() { return !ended_ && !child_.poll(); }
  int pid() const { return child_.pid(); }
  void shut_down();

 private:
  WorkerChannel(WorkerOptions options, ChildProcess child, FileDescriptor socket, SharedMemory in,
                SharedMemory out);

  Status send(std::string_view frame, std::string_view op, std::chrono::nanoseconds deadline);
  Result<Json> receive(std::string_view op, std::chrono::nanoseconds deadline);
  Status wait(short events, std::string_view op, std::chrono::nanoseconds deadline);
  Status check_limits(std::string_view op, std::chrono::nanoseconds deadline);
  // Ends the worker when there is an excess.
  Status within_memory(std::string_view op, std::optional<uint64_t> excess);
  Error died(std::string_view op);
  bool stop_comes() const;
  void close();
  std::string last_words() const;

  WorkerOptions options_;
  ChildProcess child_;
  FileDescriptor socket_;
  SharedMemory in_, out_;
  std::string received_;
  std::optional<Error> ended_;
  MemoryWatch memory_;
  std::chrono::nanoseconds undisturbed_until_{0};  // No look at the memory before.
  bool stopped_ = false;
};

}  // namespace hasten
