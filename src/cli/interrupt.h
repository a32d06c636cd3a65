// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a stop_token, for as long as the scope lives. A second one
// ends the process at once.
#pragma once

#include <stop_token>
#include <thread>

namespace hasten {

class InterruptScope {
 public:
  InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();
  std::stop_token token() const { return source_.get_token(); }

 private:
  int read_end_ = -1, write_end_ = -1;
  std::stop_source source_;
  std::jthread listener_;
};

}  // namespace hasten
