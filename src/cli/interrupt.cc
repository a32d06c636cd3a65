// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace hasten {
namespace {

// A handler may only touch what is async-signal-safe: it writes one byte to a pipe,
// and a thread turns that into a stop request.
std::atomic<int> g_pipe = -1;

void on_signal(int number) {
  const char byte = 's';
  const int pipe = g_pipe.exchange(-1);  // The second signal finds none: the default ends us.
  if (pipe >= 0 && write(pipe, &byte, 1) == 1) return;
  signal(number, SIG_DFL);
  raise(number);
}

void listen_to(int number) {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(number, &action, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_ = ends[0];
  write_end_ = ends[1];
  listener_ = std::jthread([this] {
    char byte = 0;
    if (read(read_end_, &byte, 1) == 1 && byte == 's') source_.request_stop();
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
