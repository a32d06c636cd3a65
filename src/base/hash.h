// SPDX-License-Identifier: Apache-2.0
// SHA-256 as 64 lowercase hex digits.
#pragma once

#include <hasten/result.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace hasten {

std::string sha256(std::string_view bytes);
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace hasten
