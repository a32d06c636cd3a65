// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/process_table.h"
#include "base/test_support.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::eventually;
using testing::folder_for;
using testing::LifeLine;

constexpr auto kLong = std::chrono::minutes(1);

ChildOptions shell(std::string script) {
  return ChildOptions{.command = {"/bin/sh", "-c", std::move(script)}};
}

ExitStatus end_of(ChildProcess& child) {
  const auto status = child.wait_for(kLong);
  REQUIRE(status);
  return *status;
}

char state_of(int pid) {
  const auto facts = process_facts(pid);
  return facts ? facts->state : 'X';
}

TEST_CASE("ChildProcess: gives the exit code") {
  Spawner spawner;
  auto child = spawner.start(shell("exit 3"));
  REQUIRE(child);
  const ExitStatus status = end_of(*child);
  CHECK(status.code == 3);
  CHECK_FALSE(status.ok());
  CHECK(status.describe() == "exit code 3");
  auto good = spawner.start(shell("exit 0"));
  REQUIRE(good);
  CHECK(end_of(*good).ok());
  CHECK(good->kill_group().ok());  // What has ended stays as it ended.
}

TEST_CASE("ChildProcess: names the signal that ended it") {
  Spawner spawner;
  auto child = spawner.start(shell("kill -SEGV $$"));
  REQUIRE(child);
  const ExitStatus status = end_of(*child);
  CHECK(status.signal == SIGSEGV);
  CHECK(status.describe() == "killed by SIGSEGV (segmentation fault)");
  CHECK(ExitStatus{.signal = SIGKILL}.describe() == "killed by SIGKILL (killed)");
  CHECK(ExitStatus{.signal = 63}.describe() == "killed by signal 63");
}

TEST_CASE("Spawner: a program that cannot be started is an error with its name") {
  const TemporaryFolder folder = folder_for("child");
  std::ofstream(folder.path() / "text") << "x";
  std::ofstream(folder.path() / "script") << "#!/no/such/interpreter\n";
  std::ofstream(folder.path() / "binary") << "\x7f"
                                             "ELF nonsense";
  for (const char* name : {"script", "binary"}) {
    fs::permissions(folder.path() / name, fs::perms::owner_all);
  }
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"no-such-program-x", "No such file or directory"},
      {"/no/such/program", "No such file or directory"},
      {"", "No such file or directory"},
      {path("text"), "Permission denied"},
      {path("script"), "No such file or directory"},
      {path("binary"), "Exec format error"},
      {"/", "Is a directory"}};
  Spawner spawner;
  for (const auto& [program, reason] : cases) {
    const auto child = spawner.start({.command = {program}});
    REQUIRE_FALSE(child);
    CHECK(child.error().code == Code::kUnavailable);
    CHECK(child.error().message == "cannot start '" + program + "': " + reason);
  }
}

TEST_CASE("Spawner: a missing working folder and a log that cannot be opened are named") {
  Spawner spawner;
  ChildOptions options = shell("true");
  options.folder = "/no/such/folder";
  const auto child = spawner.start(options);
  REQUIRE_FALSE(child);
  CHECK(child.error().message ==
        "starting '/bin/sh' in folder '/no/such/folder': No such file or directory");
  ChildOptions logged = shell("true");
  logged.log = "/no/such/log";
  const auto other = spawner.start(logged);
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "writing '/no/such/log': No such file or directory");
}

TEST_CASE("Spawner: the child gets arguments, environment and folder as they were given") {
  const TemporaryFolder folder = folder_for("child 模型");
  const testing::ScopedVariable inherited("HASTEN_TEST_OLD", "old");
  const testing::ScopedVariable replaced("HASTEN_TEST_NEW", "old");
  Spawner spawner;
  auto child = spawner.start(
      {.command = {"sh", "-c", "printf '%s|' \"$@\" \"$PWD\" \"$A\" $B; cat", "sh", "it's", "$HOME",
                   "", "模 型"},
       .environment = {{"HASTEN_TEST_NEW", "new"}, {"A", "a=b c"}, {"B", "from-$PATH"}},
       .folder = folder.path(),
       .log = folder.path() / "log"});
  REQUIRE(child);
  CHECK(end_of(*child).ok());
  CHECK(child->log_tail() == "it's|$HOME||模 型|" + folder.path().string() + "|a=b c|from-$PATH|");
  auto printed = spawner.start({.command = {"sh", "-c", "echo $HASTEN_TEST_OLD $HASTEN_TEST_NEW"},
                                .environment = {{"HASTEN_TEST_NEW", "new"}},
                                .log = folder.path() / "log2"});
  REQUIRE(printed);
  CHECK(end_of(*printed).ok());
  CHECK(printed->log_tail() == "old new\n");
}

TEST_CASE("Spawner: the program is searched in the child's PATH") {
  const TemporaryFolder folder = folder_for("child");
  std::ofstream(folder.path() / "my-tool") << "#!/bin/sh\nexit 7\n";
  fs::permissions(folder.path() / "my-tool", fs::perms::owner_all);
  Spawner spawner;
  auto child = spawner.start(
      {.command = {"my-tool"}, .environment = {{"PATH", "/nowhere:" + folder.path().string()}}});
  REQUIRE(child);
  CHECK(end_of(*child).code == 7);
}

TEST_CASE("Spawner: inherited descriptors become 3, 4, ... and no other reaches the child") {
  LifeLine first, second;
  const FileDescriptor leaky(::fcntl(0, F_DUPFD, 40));  // Without O_CLOEXEC.
  REQUIRE(leaky.is_open());
  Spawner spawner;
  // In the order of the list, whatever their numbers are here.
  ChildOptions options = shell(
      "echo one >&3; echo two >&4; [ ! -e /proc/$$/fd/5 ] && [ ! -e "
      "/proc/$$/fd/" +
      std::to_string(leaky.get()) + " ]");
  options.inherited = {second.writer(), first.writer()};
  auto child = spawner.start(options);
  REQUIRE(child);
  first.close_writer();
  second.close_writer();
  CHECK(end_of(*child).ok());
  CHECK(second.read_to_end() == "one\n");
  CHECK(first.read_to_end() == "two\n");
}

TEST_CASE("Spawner: what the host ignores or blocks, the child does not") {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old);
  {
    Spawner spawner;
    for (const int signal : {SIGUSR1, SIGUSR2}) {
      auto child = spawner.start(shell("kill -" + std::to_string(signal) + " $$"));
      REQUIRE(child);
      CHECK(end_of(*child).signal == signal);
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::signal(SIGUSR1, before);
}

TEST_CASE("Spawner: a host that ignores the end of its children loses the code, not the child") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  {
    Spawner spawner;
    auto child = spawner.start(shell("exit 3"));
    REQUIRE(child);
    const ExitStatus status = end_of(*child);
    CHECK_FALSE(status.ok());
    CHECK(status.describe() == "exit status unknown");
    CHECK(spawner.run(shell("exit 0"), {}));
  }
  std::signal(SIGCHLD, before);
}

TEST_CASE("ChildProcess: the tail of the log is its own, whole lines, valid text") {
  const TemporaryFolder folder = folder_for("child");
  const fs::path log = folder.path() / "log";
  std::ofstream(log) << "of an earlier child\n";
  Spawner spawner;
  ChildOptions options = shell("echo first line; printf 'b\\377d \\033[1mx\\r\\n' >&2; echo last");
  options.log = log;
  auto child = spawner.start(options);
  REQUIRE(child);
  CHECK(end_of(*child).ok());
  CHECK(child->log_tail() ==
        "first line\nb\xEF\xBF\xBD"
        "d [1mx\nlast\n");
  CHECK(child->log_tail(8) == "last\n");
  CHECK(child->log_tail(3) == "st\n");
  CHECK(read_file(log)->starts_with("of an earlier child\nfirst line\n"));
}

TEST_CASE("ChildProcess: the whole group stands, goes on, and dies standing") {
  LifeLine line;
  Spawner spawner;
  ChildOptions options = shell("sleep 1000 & echo $! >&3; wait");
  options.inherited = {line.writer()};
  auto child = spawner.start(options);
  REQUIRE(child);
  line.close_writer();
  const int grandchild = std::stoi(line.read_line());
  child->stop();
  CHECK(state_of(child->pid()) == 'T');
  CHECK(eventually([&] { return state_of(grandchild) == 'T'; }));
  child->resume();
  CHECK(eventually([&] { return state_of(child->pid()) == 'S'; }));
  CHECK(eventually([&] { return state_of(grandchild) == 'S'; }));
  child->stop();
  CHECK_FALSE(child->poll());
  CHECK(child->kill_group().signal == SIGKILL);
  CHECK(line.read_to_end() == "");
}

TEST_CASE("ChildProcess: its end, and its destruction, end the rest of the group") {
  Spawner spawner;
  LifeLine left, killed;
  ChildOptions options = shell("sleep 1000 & exit 0");
  options.inherited = {left.writer()};
  auto ended = spawner.start(options);
  REQUIRE(ended);
  left.close_writer();
  CHECK(end_of(*ended).ok());
  CHECK(left.read_to_end() == "");
  {
    ChildOptions endless = shell("sleep 1000 & wait");
    endless.inherited = {killed.writer()};
    REQUIRE(spawner.start(endless));
    killed.close_writer();
  }
  CHECK(killed.read_to_end() == "");
}

TEST_CASE("ChildProcess: counts the memory of its descendants too") {
  LifeLine line;
  Spawner spawner;
  // tail keeps a line without an end in memory.
  ChildOptions options =
      shell("(head -c 60000000 /dev/zero; echo full >&3; sleep 1000) | tail & wait");
  options.inherited = {line.writer()};
  auto child = spawner.start(options);
  REQUIRE(child);
  line.close_writer();
  CHECK(line.read_line() == "full");
  CHECK(eventually([&] { return child->resident_bytes() > 60'000'000; }));
  child->kill_group();
  CHECK(child->resident_bytes() == 0);
}

TEST_CASE("Spawner::run: success is silent, failure carries code, status and the log's tail") {
  const TemporaryFolder folder = folder_for("child");
  Spawner spawner;
  CHECK(spawner.run(shell("exit 0"), {}));
  ChildOptions options = shell("echo g++ not found; exit 2");
  options.log = folder.path() / "log";
  const Status failed = spawner.run(options, {});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Code::kBuildFailed);
  CHECK(failed.error().message ==
        "'/bin/sh' failed: exit code 2; the last it said:\ng++ not found");
  const Status crashed = spawner.run(shell("kill -ABRT $$"), {});
  REQUIRE_FALSE(crashed);
  CHECK(crashed.error().code == Code::kCrashed);
  CHECK(crashed.error().message == "'/bin/sh' failed: killed by SIGABRT (aborted)");
  const Status missing = spawner.run({.command = {"no-such-program-x"}}, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kUnavailable);
}

TEST_CASE("Spawner::run: the time limit ends what ignores SIGTERM, and its children") {
  LifeLine line;
  Spawner spawner;
  ChildOptions options =
      shell("trap '' TERM INT HUP; sleep 1000 & while :; do wait; sleep 1; done");
  options.inherited = {line.writer()};
  const Status ended = spawner.run(options, {.timeout = milliseconds(300)});
  line.close_writer();
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Code::kTimedOut);
  CHECK(ended.error().message == "'/bin/sh' had not ended after 300 ms and was killed");
  CHECK(line.read_to_end() == "");
}

TEST_CASE("Spawner::run: the memory limit counts the whole group") {
  LifeLine line;
  Spawner spawner;
  ChildOptions options = shell("(head -c 80000000 /dev/zero; sleep 1000) | tail & wait");
  options.inherited = {line.writer()};
  const Status ended = spawner.run(options, {.timeout = kLong, .memory_bytes = 60'000'000});
  line.close_writer();
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Code::kOutOfMemory);
  CHECK(ended.error().message.find("more than its limit of 60 MB") != std::string::npos);
  CHECK(line.read_to_end() == "");
}

TEST_CASE("Spawner::run: a stop request ends it at once, also one that came before") {
  LifeLine line;
  std::stop_source source;
  Spawner spawner;
  std::thread asker([&] {
    line.read_line();
    source.request_stop();
  });
  ChildOptions options = shell("echo ready >&3; sleep 1000");
  options.inherited = {line.writer()};
  const Status ended = spawner.run(options, {.timeout = kLong, .stop = source.get_token()});
  asker.join();
  line.close_writer();
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Code::kCancelled);
  CHECK(line.read_to_end() == "");
  const Status never = spawner.run(shell("exit 1"), {.stop = source.get_token()});
  REQUIRE_FALSE(never);
  CHECK(never.error().code == Code::kCancelled);
}

TEST_CASE("Spawner: many threads may start children at once") {
  Spawner spawner;
  std::vector<std::thread> threads;
  std::vector<int> codes(4, -2);
  for (size_t i = 0; i < codes.size(); ++i) {
    threads.emplace_back([&, i] {
      auto child = spawner.start(shell("exit " + std::to_string(i)));
      if (!child) return;
      if (const auto status = child->wait_for(kLong)) codes[i] = status->code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(codes == std::vector<int>{0, 1, 2, 3});
}

}  // namespace
}  // namespace hasten
