// SPDX-License-Identifier: Apache-2.0
// An open file, and the system calls on it with EINTR, short counts and errno handled.
#pragma once

#include <hasten/result.h>

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

namespace hasten {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// O_CLOEXEC is always set. Errors name `path`.
Result<FileDescriptor> open_file(const std::filesystem::path& path, int flags, int mode = 0666);
// The same for a file of bytes that lies still. What is another kind of thing (a folder, a pipe,
// a device, a socket) is kInvalidArgument and is never waited for.
Result<FileDescriptor> open_regular_file(const std::filesystem::path& path, int flags,
                                         int mode = 0666);
// 0 at the end of the file.
Result<size_t> read_some(const FileDescriptor& file, char* to, size_t size,
                         const std::filesystem::path& path);
Status write_all(const FileDescriptor& file, std::string_view content,
                 const std::filesystem::path& path);
Status sync_file(const FileDescriptor& file, const std::filesystem::path& path);

}  // namespace hasten
