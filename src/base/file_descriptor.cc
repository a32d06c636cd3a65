// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/files.h"

namespace hasten {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void FileDescriptor::reset() {
  // No retry after EINTR: Linux has closed the descriptor by then, another thread may own it.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<FileDescriptor> open_file(const std::filesystem::path& path, int flags, int mode) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return file_error((flags & O_ACCMODE) == O_RDONLY ? "reading" : "writing", path, errno);
  }
  return FileDescriptor(fd);
}

Result<FileDescriptor> open_regular_file(const std::filesystem::path& path, int flags, int mode) {
  // A pipe that nobody is at the other end of would be waited for, as some devices would.
  Result<FileDescriptor> file = open_file(path, flags | O_NONBLOCK | O_NOCTTY, mode);
  if (!file) {
    // A socket cannot be opened, and a folder not for writing: what it is says more.
    std::error_code unknown;
    const bool other = std::filesystem::is_other(path, unknown) ||
                       std::filesystem::is_directory(path, unknown);
    return other ? not_a_regular_file(path) : std::move(file).error();
  }
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0) return file_error("reading", path, errno);
  if (S_ISREG(facts.st_mode)) return file;
  return not_a_regular_file(path);
}

Result<size_t> read_some(const FileDescriptor& file, char* to, size_t size,
                         const std::filesystem::path& path) {
  while (true) {
    const ssize_t got = ::read(file.get(), to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return file_error("reading", path, errno);
  }
}

Status write_all(const FileDescriptor& file, std::string_view content,
                 const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t put = ::write(file.get(), content.data(), content.size());
    if (put >= 0) {
      content.remove_prefix(static_cast<size_t>(put));
    } else if (errno != EINTR) {
      return file_error("writing", path, errno);
    }
  }
  return {};
}

Status sync_file(const FileDescriptor& file, const std::filesystem::path& path) {
  // EINVAL: a file system without fsync. Nothing can be done, and nothing is lost yet.
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return file_error("writing", path, errno);
  }
  return {};
}

}  // namespace hasten
