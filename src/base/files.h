// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, atomic writes, folders that vanish. Every error names the path.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace hasten {

// "writing '/a/b': No space left on device", with the remedy where there is one. kIo.
Error file_error(std::string_view doing, const std::filesystem::path& path, int error_number);

// Is there a regular file of this name? kInvalidArgument otherwise: for a name that a user gave.
Status check_is_file(const std::filesystem::path& path);
// "/a/b: is no regular file, but a pipe", for what is there but cannot be read like a file.
Error not_a_regular_file(const std::filesystem::path& path);
// Is there a folder for it to be written into? kInvalidArgument otherwise, too.
Status check_has_folder(const std::filesystem::path& path);
// That a result is not written over one of `others`, whatever name it has there (links
// included): kInvalidArgument. Empty paths are nobody's.
Status check_is_none_of(const std::filesystem::path& written,
                        const std::vector<std::filesystem::path>& others);
// Neither waits for a pipe: see open_regular_file().
Result<std::string> read_file(const std::filesystem::path& path);
// At most `limit` bytes from the start.
Result<std::string> read_prefix(const std::filesystem::path& path, size_t limit);
// Temporary name in the same folder, fsync, rename, fsync of the folder: a reader
// sees the old file or the new one. A full disk leaves the old one. Symbolic links
// are followed; a device or a pipe is written in place, and fails where nobody reads it.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
Status make_folder(const std::filesystem::path& path);  // With parents.
// Can a file be created in this folder? Asked before long work.
Status check_writable(const std::filesystem::path& folder);

// A folder that is removed with everything in it. Folders left by a process that
// was killed are removed by the next one (their names carry the process id). They
// are under $TMPDIR, else /tmp.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(std::string_view purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  // Held while the folder is in use: a process id says nothing to a process in
  // another container that shares the folder above.
  FileDescriptor lock_;
};

// The running program, or the library this function is in.
std::filesystem::path own_binary();
// The `hasten` command: $HASTEN_COMMAND, else this program if that is its name, else
// the one beside this program or library, else ../bin/hasten from there.
Result<std::filesystem::path> command_path();

}  // namespace hasten
