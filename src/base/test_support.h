// SPDX-License-Identifier: Apache-2.0
// Small helpers of this folder's tests.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/files.h"

namespace hasten::testing {

inline TemporaryFolder folder_for(std::string_view purpose) {
  auto folder = TemporaryFolder::create(purpose);
  REQUIRE(folder);
  return *std::move(folder);
}

inline size_t count_files(const std::filesystem::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Looks again and again, for ten seconds at most, whether something has come true.
template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

// A pipe whose writing end is given to processes: it ends when the last of them has.
class LifeLine {
 public:
  LifeLine() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reader_ = FileDescriptor(ends[0]);
    writer_ = FileDescriptor(ends[1]);
  }
  int writer() const { return writer_.get(); }
  void close_writer() { writer_.reset(); }
  // All that was written until everybody had let go, or nothing after ten seconds of silence.
  std::optional<std::string> read_to_end() {
    std::string text;
    char buffer[256];
    while (true) {
      pollfd waited{reader_.get(), POLLIN, 0};
      if (::poll(&waited, 1, 10'000) != 1) return std::nullopt;
      const ssize_t got = ::read(reader_.get(), buffer, sizeof buffer);
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
  }
  // The next line; waits for it.
  std::string read_line() {
    std::string line;
    for (char c; ::read(reader_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  FileDescriptor reader_, writer_;
};

// An environment variable for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// While it lives no file can grow beyond `bytes`: the nearest thing to a full disk
// that needs no privilege.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace hasten::testing
