// SPDX-License-Identifier: Apache-2.0
#include "backend/own_memory.h"

#include <charconv>
#include <string>

#include "base/files.h"
#include "base/text.h"

namespace hasten {

std::optional<uint64_t> own_memory_bytes(std::string_view field) {
  auto status = read_file("/proc/self/status");
  if (!status) return std::nullopt;
  const std::string start = format("{}:", field);
  for (const std::string& line : split(*status, '\n')) {
    if (!line.starts_with(start)) continue;
    const std::string_view number = trim(std::string_view(line).substr(start.size()));
    uint64_t kilobytes = 0;
    const auto [end, failure] =
        std::from_chars(number.data(), number.data() + number.size(), kilobytes);
    if (failure == std::errc()) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace hasten
