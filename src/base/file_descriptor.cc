// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

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
