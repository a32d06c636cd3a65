// SPDX-License-Identifier: Apache-2.0
#include "base/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/text.h"

namespace hasten {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// proc(5): "12 (a (b) c) S ppid pgrp ...", rss is field 24, in pages.
std::optional<ProcessFacts> parse_stat(std::string_view text) {
  ProcessFacts facts;
  std::from_chars(text.data(), text.data() + text.size(), facts.pid);
  // The name may hold anything, parentheses too: the last one ends it.
  const size_t end = text.rfind(") ");
  if (end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(end + 2);
  size_t start = 0;
  for (int field = 3; field <= 24; ++field) {
    const size_t stop = text.find(' ', start);
    if (stop == std::string_view::npos) return std::nullopt;
    const char* from = text.data() + start;
    const char* to = text.data() + stop;
    if (field == 3) facts.state = *from;
    if (field == 4) std::from_chars(from, to, facts.parent);
    if (field == 5) std::from_chars(from, to, facts.group);
    if (field == 24) std::from_chars(from, to, facts.resident_bytes);
    start = stop + 1;
  }
  facts.resident_bytes *= static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return facts;
}

std::optional<ProcessFacts> read_stat(int folder, const char* name) {
  char path[64];
  std::snprintf(path, sizeof path, "%s/stat", name);
  const FileDescriptor file(::openat(folder, path, O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  char text[1024];  // 52 numbers and a name of 64 characters at most.
  const ssize_t got = ::read(file.get(), text, sizeof text);
  if (got <= 0) return std::nullopt;
  return parse_stat(std::string_view(text, static_cast<size_t>(got)));
}

}  // namespace

std::optional<ProcessFacts> process_facts(int pid) {
  return read_stat(AT_FDCWD, format("/proc/{}", pid).c_str());
}

std::vector<ProcessFacts> all_processes() {
  std::vector<ProcessFacts> processes;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
  if (!folder) return processes;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (auto facts = read_stat(::dirfd(folder.get()), entry->d_name)) processes.push_back(*facts);
  }
  return processes;
}

std::vector<ProcessFacts> group_and_descendants(int group) {
  const std::vector<ProcessFacts> all = all_processes();
  std::vector<ProcessFacts> members;
  std::set<int> pids;
  // A child can stand before its parent (process ids wrap around): repeat until nothing is new.
  for (size_t before = SIZE_MAX; before != members.size();) {
    before = members.size();
    for (const ProcessFacts& facts : all) {
      if (pids.contains(facts.pid)) continue;
      if (facts.group != group && !pids.contains(facts.parent)) continue;
      pids.insert(facts.pid);
      members.push_back(facts);
    }
  }
  return members;
}

}  // namespace hasten
