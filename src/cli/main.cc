// SPDX-License-Identifier: Apache-2.0
// The command `hasten`. The two hidden subcommands are told apart before anything
// else is set up: children start by the dozen and should start fast.
#include "backend/worker.h"
#include "base/child_process.h"
#include "cli/commands.h"
#include "cli/terminal.h"

#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

// hasten worker LIBRARY --threads N
int worker(int argc, char** argv) {
  int threads = 1;
  for (int i = 3; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--threads") threads = std::atoi(argv[i + 1]);
  }
  return hasten::run_worker(argv[2], threads);
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows beyond a limit (ulimit -f) is an error to tell, not an end.
  std::signal(SIGXFSZ, SIG_IGN);
  // Who started us may ignore the end of children, and an ignored signal is inherited: nobody
  // could tell then how a child ended.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "worker" && argc > 2) return worker(argc, argv);
    if (command == "guard" && argc > 2) {
      return hasten::run_guard(std::vector<std::string>(argv + 2, argv + argc));
    }
    return hasten::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return hasten::fail({hasten::Code::kOutOfMemory, "there is not enough memory for that",
                         "smaller inputs and smaller --batch-sizes take less"});
  } catch (const std::exception& bug) {
    hasten::print_error({hasten::Code::kInternal, std::string("a bug in hasten: ") + bug.what(),
                         "please report it with the command that led here"});
    return hasten::kExitBug;
  }
}
