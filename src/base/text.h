// SPDX-License-Identifier: Apache-2.0
// Formatting, and the few string helpers that the standard library lacks.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

// "1 round", "2 rounds"; the plural ends in s.
std::string counted(size_t count, std::string_view noun);

using fmt::format;

// Empty parts are kept; an empty text has no parts.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string shell_quoted(std::string_view word);  // Only quoted when it has to be.
// The same text, where bytes that are no UTF-8 are U+FFFD.
std::string valid_utf8(std::string_view text);
// The same text for a terminal: control characters, which could move its cursor or change its
// colours, and bytes that are no UTF-8 are written as "\x1b". Line ends stay, and tabs.
std::string printable(std::string_view text);
// The same where a text stands within a line: "\n" for a line end, "\t" for a tab.
std::string printable_name(std::string_view text);
// "50ms", "2s", "10m", "1h", "1.5s"; none for anything else or less than zero.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
// "512MB" (10^6), "1.5GiB" (2^30), "1000" (bytes), in any case; none for anything else.
std::optional<uint64_t> parse_size(std::string_view text);
std::string human_size(uint64_t bytes);                     // "88 MB"
std::string human_duration(std::chrono::nanoseconds time);  // "3.41 ms", "12.3 s", "2 min 5 s"
// The word of `known` that is closest to `word`, if close enough to be a slip of the pen.
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known);

}  // namespace hasten
