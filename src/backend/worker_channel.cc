// SPDX-License-Identifier: Apache-2.0
#include "backend/worker_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/files.h"
#include "base/text.h"

namespace hasten {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How long a stop request may go unseen.
constexpr nanoseconds kSlice = milliseconds(50);
// Reading the memory of a process group costs milliseconds of a CPU and of its caches. Turns
// are shorter than this, so that none of them is disturbed while it is measured.
constexpr nanoseconds kTurnTime = std::chrono::seconds(1);
// A dying process needs time to free its memory, not more.
constexpr nanoseconds kDeathTime = std::chrono::seconds(2);
// How much later than a child's end the request to stop may be seen that goes with it.
constexpr nanoseconds kStopTime = milliseconds(500);
constexpr nanoseconds kShutDownTime = std::chrono::seconds(5);

Error system_error(std::string_view what) {
  return Error{Code::kIo, format("{}: {}", what, std::strerror(errno))};
}

nanoseconds now() { return real_clock().now(); }

// Milliseconds for poll(), rounded up: 0 would spin until the deadline.
int poll_time(nanoseconds time) {
  return static_cast<int>(std::chrono::ceil<milliseconds>(std::max(time, nanoseconds(0))).count());
}

Result<std::vector<std::string>> command_of(const WorkerOptions& options) {
  const BackendEntry& backend = options.backend;
  if (!backend.library.empty()) {
    HASTEN_TRY(const std::filesystem::path program, command_path());
    return std::vector<std::string>{program.string(), "worker",
                                    std::filesystem::absolute(backend.library).string(),
                                    "--threads", std::to_string(options.threads)};
  }
  if (backend.command.empty()) {
    const std::string& why = backend.describe["error"].as_string();
    return Error{Code::kUnavailable,
                 format("{}: {}", backend.name, why.empty() ? "it names no command" : why)};
  }
  std::vector<std::string> command = backend.command;
  for (std::string& word : command) {
    if (word != "{python}") continue;
    HASTEN_TRY(const std::filesystem::path python, find_python());
    word = python.string();
  }
  return command;
}

std::map<std::string, std::string> environment_of(const WorkerOptions& options,
                                                  const std::filesystem::path& temporary) {
  std::map<std::string, std::string> environment = {
      {"TMPDIR", temporary.string()},
      {"OMP_NUM_THREADS", std::to_string(options.threads)},
      {"HASTEN_THREADS", std::to_string(options.threads)},
  };
  if (options.backend.library.empty()) {
    const char* path = std::getenv("PYTHONPATH");
    environment["PYTHONPATH"] = python_package_folder().string() +
                                (path && *path ? std::string(":") + path : std::string());
  }
  for (const auto& [key, value] : options.environment) environment[key] = value;
  return environment;
}

}  // namespace

WorkerChannel::WorkerChannel(WorkerOptions options, ChildProcess child, FileDescriptor socket,
                             SharedMemory in, SharedMemory out)
    : options_(std::move(options)),
      child_(std::move(child)),
      socket_(std::move(socket)),
      in_(std::move(in)),
      out_(std::move(out)),
      memory_(options_.memory_limit_bytes) {}

Result<WorkerChannel> WorkerChannel::open(Spawner& spawner, WorkerOptions options) {
  HASTEN_TRY(SharedMemory in, SharedMemory::create());
  HASTEN_TRY(SharedMemory out, SharedMemory::create());
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error("socketpair");
  }
  FileDescriptor ours(ends[0]), theirs(ends[1]);
  if (fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl");

  options.work_dir = std::filesystem::absolute(options.work_dir);
  // Engines unpack hundreds of megabytes there, and a killed one removes nothing.
  const std::filesystem::path temporary = options.work_dir / "tmp";
  HASTEN_TRY_STATUS(make_folder(temporary));
  HASTEN_TRY(std::vector<std::string> command, command_of(options));
  HASTEN_TRY(ChildProcess child,
             spawner.start({.command = std::move(command),
                            .environment = environment_of(options, temporary),
                            .folder = options.folder.empty() ? options.work_dir : options.folder,
                            .log = options.work_dir / "worker.log",
                            .inherited = {theirs.get(), in.fd(), out.fd()}}));
  theirs.reset();  // Or the worker's end would never be seen to close.

  WorkerChannel channel(std::move(options), std::move(child), std::move(ours), std::move(in),
                        std::move(out));
  const nanoseconds deadline = now() + channel.options_.start_timeout;
  HASTEN_TRY(const Json hello, channel.receive("start", deadline));
  if (hello.contains("error")) return channel.end(error_from_json(hello["error"]));
  if (hello["protocol"].as_int() != 1) {
    return channel.refuse("start", Error{Code::kInternal, "a hello of another protocol than 1"});
  }
  if (const std::string& name = hello["backend"].as_string();
      name != channel.options_.backend.name) {
    return channel.refuse("start", Error{Code::kInternal, format("it is '{}'", name)});
  }
  return channel;
}

Result<Json> WorkerChannel::exchange(const Json& request, nanoseconds timeout) {
  if (ended_) return *ended_;
  const std::string op = request["op"].as_string();
  const std::string frame = to_frame(request);
  if (frame.size() > kMaxMessageBytes) {
    return Error{Code::kInvalidArgument, format("a request '{}' of {} bytes", op, frame.size())};
  }
  // A turn is measured, so it is looked at before: the child stands, and nothing has begun.
  const bool measured = op == "turn";
  if (measured) HASTEN_TRY_STATUS(within_memory(op, memory_.excess(child_)));
  resume();
  const nanoseconds begin = now(), deadline = begin + timeout;
  undisturbed_until_ = measured ? begin + kTurnTime : begin;
  HASTEN_TRY_STATUS(send(frame, op, deadline));
  HASTEN_TRY(Json reply, receive(op, deadline));
  // What was done between two looks at the memory must not pass by luck.
  if (!measured) HASTEN_TRY_STATUS(within_memory(op, memory_.look(child_)));
  if (reply.contains("error")) return error_from_json(reply["error"]);
  return reply;
}

Error WorkerChannel::refuse(std::string_view op, const Error& reason) {
  return end({Code::kCrashed, format("{}: the worker's answer to '{}' makes no sense: {}{}",
                                     options_.backend.name, op, reason.message, last_words())});
}

Status WorkerChannel::send(std::string_view frame, std::string_view op, nanoseconds deadline) {
  while (!frame.empty()) {
    const ssize_t n = ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      frame.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      HASTEN_TRY_STATUS(wait(POLLOUT, op, deadline));
    } else if (errno != EINTR) {
      return died(op);
    }
  }
  return {};
}

Result<Json> WorkerChannel::receive(std::string_view op, nanoseconds deadline) {
  std::array<char, 16384> buffer;
  for (;;) {
    auto frame = first_frame(received_);
    if (!frame) return refuse(op, frame.error());
    if (*frame) {
      received_.erase(0, (*frame)->size);
      return std::move((*frame)->message);
    }
    HASTEN_TRY_STATUS(wait(POLLIN, op, deadline));
    const ssize_t n = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n > 0) {
      received_.append(buffer.data(), static_cast<size_t>(n));
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return died(op);
    }
  }
}

Status WorkerChannel::wait(short events, std::string_view op, nanoseconds deadline) {
  for (;;) {
    HASTEN_TRY_STATUS(check_limits(op, deadline));
    std::array<pollfd, 2> watched = {
        {{socket_.get(), events, 0}, {child_.end_signal(), POLLIN, 0}}};
    poll(watched.data(), watched.size(), poll_time(std::min(kSlice, deadline - now())));
    // An answer that was sent before the end is still read.
    if (watched[0].revents != 0) return {};
    if (watched[1].revents != 0 || (child_.end_signal() < 0 && child_.poll())) return died(op);
  }
}

Status WorkerChannel::check_limits(std::string_view op, nanoseconds deadline) {
  const std::string& name = options_.backend.name;
  if (options_.stop.stop_requested()) {
    return end({Code::kCancelled, format("{}: cancelled during '{}'", name, op)});
  }
  if (now() >= deadline) {
    return end({Code::kTimedOut,
                format("{}: no answer to '{}' within its time limit; the worker was killed{}", name,
                       op, last_words())});
  }
  if (now() < undisturbed_until_) return {};
  return within_memory(op, memory_.excess(child_));
}

Status WorkerChannel::within_memory(std::string_view op, std::optional<uint64_t> excess) {
  if (!excess) return {};
  return end({Code::kOutOfMemory,
              format("{}: used {} during '{}', more than the limit of {}; the worker was killed",
                     options_.backend.name, human_size(*excess), op,
                     human_size(options_.memory_limit_bytes))});
}

Error WorkerChannel::died(std::string_view op) {
  const auto status = child_.wait_for(kDeathTime);
  // Who ends us may end our children with us, and they may be the first to go.
  if (status && (status->signal == SIGINT || status->signal == SIGTERM) && stop_comes()) {
    return end({Code::kCancelled, format("{}: cancelled during '{}'", options_.backend.name, op)});
  }
  std::string how = "closed its connection";
  if (status && status->signal != 0) how = status->describe();
  if (status && status->signal == 0) how = "ended with " + status->describe();
  std::string hint;
  if (status && status->signal == SIGKILL) {
    hint = "SIGKILL by somebody else: the system may have run out of memory";
  }
  return end({Code::kCrashed,
              format("{}: the worker {}{} during '{}'{}", options_.backend.name,
                     status && status->signal != 0 ? "was " : "", how, op, last_words()),
              std::move(hint)});
}

bool WorkerChannel::stop_comes() const {
  const nanoseconds deadline = now() + kStopTime;
  while (options_.stop.stop_possible() && !options_.stop.stop_requested() && now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  return options_.stop.stop_requested();
}

Error WorkerChannel::end(Error why) {
  close();
  ended_ = why;
  return why;
}

void WorkerChannel::close() {
  child_.kill_group();
  socket_.reset();
}

std::string WorkerChannel::last_words() const {
  constexpr size_t kTail = 600, kLines = 3;  // What fits under a table row.
  std::vector<std::string> lines;
  for (const std::string& line : split(child_.log_tail(kTail), '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  if (lines.empty()) return "";
  if (lines.size() > kLines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kLines));
  }
  return format("; its last output: {}", join(lines, " | "));
}

void WorkerChannel::stop() {
  if (ended_ || stopped_) return;
  child_.stop();
  stopped_ = true;
}

void WorkerChannel::resume() {
  if (!stopped_) return;
  child_.resume();
  stopped_ = false;
}

void WorkerChannel::shut_down() {
  if (ended_) return;
  resume();
  socket_.reset();
  child_.wait_for(kShutDownTime);
  close();
  ended_ = Error{Code::kCancelled, format("{}: the worker was shut down", options_.backend.name)};
}

}  // namespace hasten
