// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "base/files.h"
#include "base/text.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "hasten-";

fs::path temporary_root() {
  const char* named = std::getenv("TMPDIR");
  return named && *named ? fs::absolute(named) : fs::path("/tmp");
}

// "hasten-123-purpose-XXXXXX" -> 123.
pid_t owner_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return failure == std::errc() && end != name.data() + name.size() && *end == '-' ? pid : 0;
}

bool is_left_over(const fs::path& folder) {
  const pid_t pid = owner_of(folder.filename().string());
  if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) return false;
  struct stat facts {};
  // lstat: a link of a stranger must not send us elsewhere.
  return ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == ::geteuid();
}

void remove_left_overs(const fs::path& root) {
  std::error_code ignored;
  for (fs::directory_iterator it(root, ignored), end; it != end; it.increment(ignored)) {
    if (!is_left_over(it->path())) continue;
    auto folder = open_file(it->path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder || ::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code failure;
    fs::remove_all(it->path(), failure);
  }
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::create(std::string_view purpose) {
  const fs::path root = temporary_root();
  remove_left_overs(root);
  std::string name;
  for (const char c : purpose) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  std::string path = (root / format("{}{}-{}-XXXXXX", kPrefix, ::getpid(), name)).string();
  if (!::mkdtemp(path.data())) {
    Error failure = file_error("creating a temporary folder in", root, errno);
    failure.hint = "set TMPDIR to a folder with free space where you may write";
    return failure;
  }
  HASTEN_TRY(FileDescriptor lock, open_file(path, O_RDONLY | O_DIRECTORY));
  // A file system without locks leaves the process id as the only sign of life.
  ::flock(lock.get(), LOCK_EX | LOCK_NB);
  return TemporaryFolder(std::move(path), std::move(lock));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  TemporaryFolder taken(std::move(other));
  std::swap(path_, taken.path_);  // `taken` removes what was here.
  std::swap(lock_, taken.lock_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace hasten
