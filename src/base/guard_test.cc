// SPDX-License-Identifier: Apache-2.0
// What is left when the process that started children is killed: nothing.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/child_process.h"
#include "base/process_table.h"
#include "base/test_support.h"

namespace hasten {
namespace {

using testing::eventually;
using testing::LifeLine;
using testing::ScopedVariable;

// Lets this program stand in for `hasten guard COMMAND...`: a constructor of ELF gets the
// arguments, and runs before doctest would take "guard" for one of its own.
__attribute__((constructor)) void become_guard(int count, char** arguments) {
  if (count < 3 || std::string_view(arguments[1]) != "guard") return;
  ::_exit(run_guard(std::vector<std::string>(arguments + 2, arguments + count)));
}

// A process that starts `options` with a Spawner of its own, and waits for its own end.
class Host {
 public:
  enum class Then { kWait, kStopChild };

  Host(const ChildOptions& options, Then then) {
    LifeLine ready;
    pid_ = ::fork();
    if (pid_ == 0) {
      Spawner spawner;
      auto child = spawner.start(options);
      if (!child) ::_exit(1);
      if (then == Then::kStopChild) child->stop();
      const std::string line = std::to_string(child->pid()) + "\n";
      if (::write(ready.writer(), line.data(), line.size()) < 0) ::_exit(1);
      while (true) ::pause();
    }
    ready.close_writer();
    child_ = std::stoi("0" + ready.read_line());
    REQUIRE(child_ > 0);
  }
  ~Host() { kill(); }

  int child() const { return child_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int child_ = 0;
};

// Nobody may reap the orphans of a container: a zombie is gone too.
bool is_gone(int pid) {
  const auto facts = process_facts(pid);
  return !facts || facts->state == 'Z';
}

ChildOptions supervised(std::string script) {
  return {.command = {"sh", "-c", std::move(script)}, .supervised = true};
}

// One child in the group, one that left it, one whose parent is gone; all hold descriptor 3.
constexpr const char* kFamily =
    "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; "
    "echo up >&3; trap '' TERM; while :; do sleep 1000; done";

TEST_CASE("guard: a child dies with a host that is killed, running or standing") {
  for (const Host::Then then : {Host::Then::kWait, Host::Then::kStopChild}) {
    LifeLine line;
    // The kernel sends SIGHUP to a standing group that nobody watches; it must not be
    // that alone which ends the child.
    ChildOptions options{.command = {"sh", "-c", "trap '' HUP; echo up >&3; exec sleep 1000"},
                         .inherited = {line.writer()}};
    Host host(options, then);
    line.close_writer();
    if (then == Host::Then::kWait) CHECK(line.read_line() == "up");
    if (then == Host::Then::kStopChild) CHECK(process_facts(host.child())->state == 'T');
    host.kill();
    REQUIRE(line.read_to_end());
    CHECK(eventually([&] { return is_gone(host.child()); }));
  }
}

TEST_CASE("guard: does not stand when its command does") {
  const ScopedVariable command("HASTEN_COMMAND", own_binary().string());
  LifeLine line;
  Spawner spawner;
  ChildOptions options = supervised("echo $$ >&3; exec sleep 1000");
  options.inherited = {line.writer()};
  auto child = spawner.start(options);
  REQUIRE(child);
  line.close_writer();
  const int shell = std::stoi(line.read_line());
  child->stop();
  CHECK(process_facts(shell)->state == 'T');
  CHECK(eventually([&] { return process_facts(child->pid())->state == 'S'; }));
  child->resume();
  CHECK(eventually([&] { return process_facts(shell)->state == 'S'; }));
}

TEST_CASE("guard: passes on the exit code and the signal of its command") {
  const ScopedVariable command("HASTEN_COMMAND", own_binary().string());
  Spawner spawner;
  const Status code = spawner.run(supervised("exit 5"), {});
  REQUIRE_FALSE(code);
  CHECK(code.error().message == "'sh' failed: exit code 5");
  const Status signal = spawner.run(supervised("kill -SEGV $$"), {});
  REQUIRE_FALSE(signal);
  CHECK(signal.error().code == Code::kCrashed);
  CHECK(signal.error().message == "'sh' failed: killed by SIGSEGV (segmentation fault)");
  CHECK(spawner.run(supervised("exit 0"), {}));
  const auto missing = spawner.start({.command = {"no-such-program-x"}, .supervised = true});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message == "cannot start 'no-such-program-x': No such file or directory");
}

TEST_CASE("guard: without the hasten command a supervised child is an error with the remedy") {
  const ScopedVariable command("HASTEN_COMMAND", "/no/such/hasten");
  Spawner spawner;
  const auto child = spawner.start(supervised("exit 0"));
  REQUIRE_FALSE(child);
  CHECK(child.error().code == Code::kUnavailable);
  CHECK(child.error().hint.find("HASTEN_COMMAND") != std::string::npos);
}

TEST_CASE("guard: what its command leaves behind ends with the command") {
  const ScopedVariable command("HASTEN_COMMAND", own_binary().string());
  LifeLine line;
  Spawner spawner;
  ChildOptions options = supervised("sleep 1000 & setsid sleep 1000 & exit 0");
  options.inherited = {line.writer()};
  CHECK(spawner.run(options, {}));
  line.close_writer();
  CHECK(line.read_to_end() == "");
}

TEST_CASE("guard: killing the child ends descendants that left its group") {
  const ScopedVariable command("HASTEN_COMMAND", own_binary().string());
  LifeLine line;
  Spawner spawner;
  ChildOptions options = supervised(kFamily);
  options.inherited = {line.writer()};
  auto child = spawner.start(options);
  REQUIRE(child);
  line.close_writer();
  CHECK(line.read_line() == "up");
  CHECK(child->resident_bytes() > 0);
  CHECK(child->kill_group().signal == SIGKILL);
  CHECK(line.read_to_end() == "");
}

TEST_CASE("guard: the whole family dies with a host that is killed, standing or not") {
  const ScopedVariable command("HASTEN_COMMAND", own_binary().string());
  for (const Host::Then then : {Host::Then::kWait, Host::Then::kStopChild}) {
    LifeLine line;
    ChildOptions options = supervised(kFamily);
    options.inherited = {line.writer()};
    Host host(options, then);
    line.close_writer();
    if (then == Host::Then::kWait) CHECK(line.read_line() == "up");
    host.kill();
    const auto said = line.read_to_end();
    REQUIRE(said);
    CHECK((*said == "" || *said == "up\n"));
    CHECK(eventually([&] { return is_gone(host.child()); }));
  }
}

}  // namespace
}  // namespace hasten
