// SPDX-License-Identifier: Apache-2.0
// Which format a file is in, from its content. Nothing is read beyond the first bytes and
// a zip's directory.
#pragma once

#include <hasten/result.h>

#include "base/zip.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

// "onnx" is a guess until read_onnx() agrees. The error says what the file is instead.
Result<std::string> recognise(const std::filesystem::path& path);

// The parts, for tests. `what` begins the messages.
Result<std::string> recognise_zip(const std::vector<ZipEntry>& entries, const std::string& what);
// The error for a file that no backend takes, by its first bytes.
Error foreign_file(std::string_view prefix, const std::string& what);

}  // namespace hasten
