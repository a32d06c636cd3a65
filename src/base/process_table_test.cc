// SPDX-License-Identifier: Apache-2.0
#include "base/process_table.h"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "base/test_support.h"

namespace hasten {
namespace {

TEST_CASE("process_facts: this process, whatever its name holds") {
  char before[16] = {};
  REQUIRE(::prctl(PR_GET_NAME, before) == 0);
  REQUIRE(::prctl(PR_SET_NAME, "a) Z (b 1 2") == 0);
  const auto facts = process_facts(::getpid());
  REQUIRE(::prctl(PR_SET_NAME, before) == 0);
  REQUIRE(facts);
  CHECK(facts->pid == ::getpid());
  CHECK(facts->parent == ::getppid());
  CHECK(facts->group == ::getpgrp());
  CHECK(facts->state == 'R');
  // A megabyte at least, and less than the machine has.
  CHECK(facts->resident_bytes > 1'000'000);
  CHECK(facts->resident_bytes < uint64_t{1} << 40);
}

TEST_CASE("process_facts: none for a process that does not exist") {
  CHECK_FALSE(process_facts(0));
  CHECK_FALSE(process_facts(-1));
}

TEST_CASE("group_and_descendants: also those who left the group") {
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    const pid_t away = ::fork();
    if (away == 0) ::setsid();
    while (true) ::pause();
  }
  ::setpgid(leader, leader);
  std::vector<ProcessFacts> members;
  CHECK(testing::eventually([&] {
    members = group_and_descendants(leader);
    return std::any_of(members.begin(), members.end(), [&](const ProcessFacts& facts) {
      return facts.parent == leader && facts.group == facts.pid;
    });
  }));
  CHECK(members.size() == 2);
  for (const ProcessFacts& facts : members) ::kill(facts.pid, SIGKILL);
  ::waitpid(leader, nullptr, 0);
}

}  // namespace
}  // namespace hasten
