// SPDX-License-Identifier: Apache-2.0
// Text in columns that are as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace hasten {

struct Column {
  std::string title;
  bool right = false;  // Aligned at the right: for numbers.
};

class Columns {
 public:
  explicit Columns(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column; missing ones are empty. Line feeds become spaces.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Columns without any content are left out, titles included. Without trailing spaces.
  std::string text(const std::string& indent) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// How many columns of a terminal a UTF-8 text takes; wide characters count two.
size_t display_width(const std::string& text);

}  // namespace hasten
