// SPDX-License-Identifier: Apache-2.0
// The journal: one JSON object a line, appended and flushed, so that what was finished
// survives a kill. A torn last line is ignored when it is read.
#pragma once

#include <hasten/result.h>

#include "base/json.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace hasten {

class Journal {
 public:
  static Result<Journal> create(const std::filesystem::path& path);  // Truncates.
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();
  // {"kind": kind, "at": utc, ...record}. From any thread.
  Status append(std::string_view kind, Json record);
  const std::filesystem::path& path() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

Result<std::vector<Json>> read_journal(const std::filesystem::path& path);

}  // namespace hasten
