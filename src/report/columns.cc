// SPDX-License-Identifier: Apache-2.0
#include "report/columns.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace hasten {
namespace {

constexpr size_t kGap = 2;

// The blocks that terminals draw two columns wide (East Asian scripts, full-width forms,
// pictographs). wcwidth() would need a UTF-8 locale, which a build machine may not have.
bool is_wide(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kWide[] = {
      {0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
      {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

bool is_combining(uint32_t c) { return c >= 0x0300 && c <= 0x036F; }

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable_name(text);  // Here, for the width is that of what is shown.
}

}  // namespace

size_t display_width(const std::string& text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    uint32_t c = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      c = (c << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    width += is_combining(c) ? 0 : is_wide(c) ? 2 : 1;
    i += length;
  }
  return width;
}

void Columns::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = one_line(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::string Columns::text(const std::string& indent) const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  const bool titled = std::any_of(titles.begin(), titles.end(),
                                  [](const std::string& title) { return !title.empty(); });
  if (titled) lines.push_back(titles);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool used =
        std::any_of(rows_.begin(), rows_.end(), [i](const auto& row) { return !row[i].empty(); });
    if (!used) continue;
    for (const auto& line : lines) widths[i] = std::max(widths[i], display_width(line[i]));
  }

  std::string out;
  for (const auto& line : lines) {
    std::string row = indent;
    for (size_t i = 0; i < line.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string padding(widths[i] - display_width(line[i]), ' ');
      row += columns_[i].right ? padding + line[i] : line[i] + padding;
      row += std::string(kGap, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

}  // namespace hasten
