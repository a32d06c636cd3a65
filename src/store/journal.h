// SPDX-License-Identifier: Apache-2.0
// The journal: one JSON object a line, appended and flushed, so that what was finished
// survives a kill. A kill may leave a torn last line.
#pragma once

#include <hasten/result.h>

#include "base/json.h"

#include <filesystem>
#include <memory>
#include <string_view>

namespace hasten {

// Where the journal of an artifact lies: beside it.
std::filesystem::path journal_path(const std::filesystem::path& artifact);

class Journal {
 public:
  // Begins anew. Until it is destroyed no other journal can be created at this path, from
  // whatever process: two tunes would write one artifact.
  static Result<Journal> create(const std::filesystem::path& path);
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

}  // namespace hasten
