// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/text.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

std::string remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there, or choose another disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a place where you may write, or change its permissions";
    case ENOENT:
      return "check the path";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    default:
      return {};
  }
}

fs::path folder_of(const fs::path& file) {
  const fs::path parent = file.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

Result<std::string> read_up_to(const fs::path& path, size_t limit) {
  HASTEN_TRY(const FileDescriptor file, open_regular_file(path, O_RDONLY));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return file_error("reading", path, errno);
  // The size is a first guess only: files under /proc claim to be empty.
  const size_t claimed = facts.st_size > 0 ? static_cast<size_t>(facts.st_size) : 0;
  constexpr size_t kSmallest = 4096;
  std::string content;
  size_t used = 0;
  while (used < limit) {
    // One byte more than claimed finds the end without growing.
    const size_t wanted = used == 0 ? std::max(claimed, kSmallest) + 1 : used * 2;
    content.resize(std::min(wanted, limit));
    while (used < content.size()) {
      HASTEN_TRY(const size_t got,
                 read_some(file, content.data() + used, content.size() - used, path));
      if (got == 0) {
        content.resize(used);
        return content;
      }
      used += got;
    }
  }
  return content;
}

std::string_view kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    default:
      return "something else";
  }
}

// A device or a pipe. A pipe is given a moment to find its reader; a plain open() would wait
// for one for ever.
Result<FileDescriptor> open_in_place(const fs::path& path) {
  constexpr std::chrono::milliseconds kBetween(20);
  constexpr int kTries = 100;
  std::error_code ignored;
  const bool is_pipe = fs::is_fifo(path, ignored);
  for (int i = 0;; ++i) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
      FileDescriptor file(fd);
      // Once it is open, a slow reader is waited for.
      if (::fcntl(fd, F_SETFL, 0) != 0) return file_error("writing", path, errno);
      return file;
    }
    if (errno == EINTR) continue;
    if (!is_pipe || errno != ENXIO) return file_error("writing", path, errno);
    if (i == kTries) {
      return Error{Code::kIo, path.string() + ": is a pipe that nobody reads",
                   "start its reader first, or name a regular file"};
    }
    std::this_thread::sleep_for(kBetween);
  }
}

struct OwnObject {
  uintptr_t address;  // Of something in the object looked for.
  fs::path path;      // Empty: the main program.
};

int find_own_object(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<OwnObject*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || wanted->address < start ||
        wanted->address >= start + part.p_memsz) {
      continue;
    }
    wanted->path = info->dlpi_name;
    return 1;
  }
  return 0;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Error file_error(std::string_view doing, const fs::path& path, int error_number) {
  return {
      Code::kIo,
      format("{} '{}': {}", doing, path.string(), std::generic_category().message(error_number)),
      remedy(error_number)};
}

Status check_is_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  if (type == fs::file_type::not_found) {
    return Error{Code::kInvalidArgument, path.string() + ": does not exist"};
  }
  // What cannot be asked for its type cannot be read either, and reading tells why.
  if (type == fs::file_type::regular || type == fs::file_type::none) return {};
  return not_a_regular_file(path);
}

Error not_a_regular_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  if (type == fs::file_type::directory) {
    return {Code::kInvalidArgument, path.string() + ": is a folder, not a file"};
  }
  return {Code::kInvalidArgument,
          format("{}: is no regular file, but {}", path.string(), kind_of(type)),
          "files are read more than once and by several processes: copy the content into a "
          "regular file and name that"};
}

Status check_has_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return Error{Code::kInvalidArgument, path.string() + ": is a folder", "name a file in it"};
  }
  if (fs::is_socket(path, ignored) || fs::is_block_file(path, ignored)) {
    return not_replaceable(path);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(folder, ignored)) return {};
  return Error{Code::kInvalidArgument,
               format("{}: there is no folder {}", path.string(), folder.string())};
}

Status check_is_none_of(const fs::path& written, const std::vector<fs::path>& others) {
  if (written.empty()) return {};
  for (const fs::path& other : others) {
    std::error_code ignored;
    const fs::path whole = fs::absolute(written, ignored).lexically_normal();
    const bool same = fs::equivalent(written, other, ignored) ||
                      (!whole.empty() && whole == fs::absolute(other, ignored).lexically_normal());
    if (other.empty() || !same || !is_replaceable(written)) continue;
    return Error{Code::kInvalidArgument,
                 format("{} would be written over {}", written.string(), other.string()),
                 "give the result a name of its own"};
  }
  return {};
}

Result<std::string> read_file(const fs::path& path) {
  return read_up_to(path, std::numeric_limits<size_t>::max());
}

Result<std::string> read_prefix(const fs::path& path, size_t limit) {
  return read_up_to(path, limit);
}

Result<fs::path> write_target(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::directory) return file_error("writing", path, EISDIR);
  if (status.type() == fs::file_type::not_found) {
    // A dangling link is followed as open() would.
    std::error_code no_link;
    const fs::path to = fs::read_symlink(path, no_link);
    return no_link ? path : to.is_absolute() ? to : path.parent_path() / to;
  }
  if (failure) return file_error("writing", path, failure.value());
  if (!is_replaceable(path)) return path;
  fs::path target = fs::canonical(path, failure);
  if (failure) return file_error("writing", path, failure.value());
  return target;
}

bool is_replaceable(const fs::path& target) {
  std::error_code failure;
  const fs::file_status status = fs::status(target, failure);
  return status.type() == fs::file_type::regular || status.type() == fs::file_type::not_found;
}

Error not_replaceable(const fs::path& target) {
  Error error = not_a_regular_file(target);
  error.hint = "name a file that is not there yet, or a regular one";
  return error;
}

fs::path temporary_name_beside(const fs::path& target) {
  // Short and independent of the target's name, which may already be as long as a name can be.
  static std::atomic<unsigned> counter{0};
  while (true) {
    fs::path name = folder_of(target) / format(".hasten-{}-{}.tmp", ::getpid(), counter++);
    std::error_code failure;
    if (fs::symlink_status(name, failure).type() == fs::file_type::not_found || failure) {
      return name;
    }
  }
}

Status commit_file(const fs::path& temporary, const fs::path& target) {
  const auto commit = [&]() -> Status {
    HASTEN_TRY(const FileDescriptor file, open_file(temporary, O_RDONLY));
    HASTEN_TRY_STATUS(sync_file(file, target));
    if (::rename(temporary.c_str(), target.c_str()) != 0) {
      return file_error("writing", target, errno);
    }
    return {};
  };
  if (Status done = commit(); !done) {
    ::unlink(temporary.c_str());
    return done;
  }
  const fs::path folder = folder_of(target);
  HASTEN_TRY(const FileDescriptor opened, open_file(folder, O_RDONLY | O_DIRECTORY));
  return sync_file(opened, folder);
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  HASTEN_TRY(const fs::path target, write_target(path));
  if (!is_replaceable(target)) {
    HASTEN_TRY_STATUS(check_has_folder(target));
    HASTEN_TRY(const FileDescriptor file, open_in_place(target));
    return write_all(file, content, path);
  }
  const fs::path temporary = temporary_name_beside(target);
  const auto write = [&]() -> Status {
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return file_error("writing", path, errno);
    return write_all(FileDescriptor(fd), content, path);
  };
  if (Status written = write(); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return commit_file(temporary, target);
}

Status make_folder(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) return file_error("creating folder", path, failure.value());
  if (!fs::is_directory(path, failure)) return file_error("creating folder", path, ENOTDIR);
  return {};
}

Status check_writable(const fs::path& folder) {
  // Asking for permissions is not enough: root has them all, also on a read-only disk.
  const fs::path probe = temporary_name_beside(folder.empty() ? fs::path("x") : folder / "x");
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return file_error("writing into folder", folder.empty() ? "." : folder, errno);
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

fs::path own_binary() {
  static const char kHere = 0;
  OwnObject own{reinterpret_cast<uintptr_t>(&kHere), {}};
  dl_iterate_phdr(find_own_object, &own);
  std::error_code failure;
  fs::path path = own.path.empty() ? fs::read_symlink("/proc/self/exe", failure)
                                   : fs::canonical(own.path, failure);
  return failure ? own.path : path;
}

Result<fs::path> command_path() {
  const char* named = std::getenv("HASTEN_COMMAND");
  if (named && *named) {
    if (is_program(named)) return fs::absolute(named);
    return Error{Code::kUnavailable,
                 format("HASTEN_COMMAND names '{}', which is no program", named),
                 "set HASTEN_COMMAND to the path of the hasten command"};
  }
  const fs::path own = own_binary();
  for (const fs::path& path :
       {own.parent_path() / "hasten", own.parent_path().parent_path() / "bin" / "hasten"}) {
    if (is_program(path)) return path;
  }
  return Error{Code::kUnavailable, format("the hasten command is not beside '{}'", own.string()),
               "install it, or set HASTEN_COMMAND to its path"};
}

}  // namespace hasten
