// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, atomic writes, folders that vanish. Every error names the path.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hasten {

Result<std::string> read_file(const std::filesystem::path& path);
// At most `limit` bytes from the start.
Result<std::string> read_prefix(const std::filesystem::path& path, size_t limit);
// Temporary name in the same folder, fsync, rename, fsync of the folder: a reader
// sees the old file or the new one. A full disk leaves the old one.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
Status make_folder(const std::filesystem::path& path);  // With parents.
// Can a file be created in this folder? Asked before long work.
Status check_writable(const std::filesystem::path& folder);

// A folder that is removed with everything in it. Folders left by a process that
// was killed are removed by the next one (their names carry the process id).
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(std::string_view purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// The running program, or the library this function is in.
std::filesystem::path own_binary();

}  // namespace hasten
