// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <utility>

namespace hasten {
namespace {

// A handler may only touch what is async-signal-safe: it writes one byte to a pipe,
// and a thread turns that into a stop request.
std::atomic<int> g_pipe = -1;

void on_signal(int number) {
  const int before = errno;  // Of whatever was interrupted.
  const char byte = 's';
  const int pipe = g_pipe.exchange(-1);  // The second signal finds none: the default ends us.
  if (pipe < 0 || write(pipe, &byte, 1) != 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
  errno = before;
}

void listen_to(int number) {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(number, &action, nullptr);
}

// A thread that leaves the two signals to the others: in it, the handler would interrupt the
// very read that the handler's byte is for.
std::jthread deaf_thread(std::function<void()> work) {
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  std::jthread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

InterruptScope::InterruptScope() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_ = ends[0];
  write_end_ = ends[1];
  listener_ = deaf_thread([this] {
    char byte = 0;
    ssize_t got = 0;
    do {
      got = read(read_end_, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1 && byte == 's') source_.request_stop();
  });
  g_pipe = write_end_;
  listen_to(SIGINT);
  listen_to(SIGTERM);
}

InterruptScope::~InterruptScope() {
  g_pipe = -1;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (write_end_ < 0) return;
  const char byte = 'q';
  (void)!write(write_end_, &byte, 1);
  listener_.join();
  close(read_end_);
  close(write_end_);
}

}  // namespace hasten
