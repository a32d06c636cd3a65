// SPDX-License-Identifier: Apache-2.0
// The steps of replacing a file so that a reader sees the old one or the new one.
#pragma once

#include <hasten/result.h>

#include <filesystem>

namespace hasten {

// The file that writing to `path` would change: symbolic links followed, so that they
// stay links. Fails for a folder. A device or a pipe is returned as it is.
Result<std::filesystem::path> write_target(const std::filesystem::path& path);
// Devices and pipes ("/dev/null", "/dev/stdout") must be written in place, never replaced.
bool is_replaceable(const std::filesystem::path& target);
// Says so, with what it is instead. kInvalidArgument.
Error not_replaceable(const std::filesystem::path& target);
// A name in the folder of `target` that nothing has yet.
std::filesystem::path temporary_name_beside(const std::filesystem::path& target);
// fsync, rename, fsync of the folder. Removes `temporary` when it fails.
Status commit_file(const std::filesystem::path& temporary, const std::filesystem::path& target);

}  // namespace hasten
