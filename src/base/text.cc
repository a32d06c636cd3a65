// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace hasten {

std::string counted(size_t count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kTimes[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},  {"s", 1e9},
                           {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
constexpr Unit kSizes[] = {{"", 1},
                           {"b", 1},
                           {"kb", 1e3},
                           {"mb", 1e6},
                           {"gb", 1e9},
                           {"tb", 1e12},
                           {"kib", 1024.0},
                           {"mib", 1048576.0},
                           {"gib", 1073741824.0},
                           {"tib", 1099511627776.0}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

// "1.5GiB" -> 1.5 and "GiB"; digits and one point only: no sign, exponent or "inf".
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  double value = 0;
  const auto [stop, failure] =
      std::from_chars(number.data(), number.data() + end, value, std::chars_format::fixed);
  if (failure != std::errc() || stop != number.data() + end) return std::nullopt;
  return std::pair(value, trim(text.substr(end)));
}

template <size_t N>
std::optional<double> scaled(std::string_view text, const Unit (&units)[N]) {
  const auto parts = number_and_unit(trim(text));
  if (!parts) return std::nullopt;
  const std::string name = lower(parts->second);
  for (const Unit& unit : units) {
    if (unit.name == name) return parts->first * unit.factor;
  }
  return std::nullopt;
}

// Three significant digits, as a person would write them: "3.41", "12.3", "988".
std::string three_digits(double value) {
  const int places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return format("{:.{}f}", value, places);
}

// Length of the valid UTF-8 sequence at the start; 0 when there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  // The second byte also excludes overlong forms, surrogates and beyond U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// U+0000 to U+001F, U+007F and U+0080 to U+009F; some terminals obey the last, too.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view next = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(next.size());
    if (length > 0 && (!is_control(next) || kept.find(next) != std::string_view::npos)) {
      out += next;
    } else if (next == "\n" || next == "\t") {
      out += next == "\n" ? "\\n" : "\\t";
    } else {
      for (const char byte : next) out += format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return out;
}

// Edits (insert, delete, replace, swap of neighbours) between two words.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t start = 0;
  for (size_t at; (at = text.find(separator, start)) != std::string_view::npos; start = at + 1) {
    parts.emplace_back(text.substr(start, at - start));
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string_view::npos) {
    return std::string(word);
  }
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out += '\'';
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    out += length > 0 ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }

std::string printable_name(std::string_view text) { return escaped(text, ""); }

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto value = scaled(text, kTimes);
  // 2^63 ns are 292 years.
  if (!value || *value >= 9223372036854775807.0) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(*value));
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const auto value = scaled(text, kSizes);
  if (!value || *value >= 18446744073709551615.0) return std::nullopt;
  return static_cast<uint64_t>(std::round(*value));
}

std::string human_size(uint64_t bytes) {
  if (bytes < 1000) return format("{} B", bytes);
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, kUnits[unit]);
}

std::string human_duration(std::chrono::nanoseconds time) {
  if (time.count() < 0) return "-" + human_duration(-time);
  const auto ns = static_cast<double>(time.count());
  if (time.count() < 1000) return format("{} ns", time.count());
  if (ns < 999.5e3) return three_digits(ns / 1e3) + " us";
  if (ns < 999.5e6) return three_digits(ns / 1e6) + " ms";
  if (ns < 59.95e9) return three_digits(ns / 1e9) + " s";
  const long long seconds = std::llround(ns / 1e9);
  if (seconds < 3600) {
    return seconds % 60 == 0 ? format("{} min", seconds / 60)
                             : format("{} min {} s", seconds / 60, seconds % 60);
  }
  const long long minutes = std::llround(ns / 60e9);
  return minutes % 60 == 0 ? format("{} h", minutes / 60)
                           : format("{} h {} min", minutes / 60, minutes % 60);
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  // One slip in three letters; more is another word.
  size_t allowed = std::max<size_t>(1, word.size() / 3);
  for (const std::string& candidate : known) {
    const size_t edits = distance(lower(word), lower(candidate));
    if (edits > allowed || edits >= candidate.size() || (best && edits == allowed)) continue;
    allowed = edits;
    best = candidate;
  }
  return best;
}

}  // namespace hasten
