// SPDX-License-Identifier: Apache-2.0
// Zip archives, stored or deflated. Reading is bounded: an archive of a stranger
// cannot name a file outside, nor unpack to more than it may.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

struct ZipEntry {
  std::string name;     // As stored; relative, with '/'.
  uint64_t size_bytes;  // Uncompressed, as the archive claims.
};

// What the entries of an archive may be called.
enum class EntryNames {
  kPaths,  // As a file below some folder: neither absolute nor with "..", in its shortest form.
  kAny,    // Anything but nothing: for archives that are never unpacked, only read.
};

class ZipReader {
 public:
  // Refuses names that `names` does not allow, duplicates, and symbolic links;
  // what is no whole zip archive is kInvalidArgument. Folders are not listed.
  static Result<ZipReader> open(const std::filesystem::path& path,
                                EntryNames names = EntryNames::kPaths);
  ZipReader(ZipReader&&) noexcept;
  ZipReader& operator=(ZipReader&&) noexcept;
  ~ZipReader();

  const std::vector<ZipEntry>& entries() const;
  bool contains(std::string_view name) const;
  // Fails when the entry is larger than `limit` bytes or damaged (CRC).
  Result<std::string> read(std::string_view name, uint64_t limit) const;
  // Writes the entry to `to`; the parent folder must exist. Streams.
  Status extract(std::string_view name, const std::filesystem::path& to, uint64_t limit) const;

 private:
  struct Impl;
  explicit ZipReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Collects entries; nothing exists at `path` before finish(), and then all of it
// (temporary name, fsync, rename). Entries are stored uncompressed and without times:
// equal entries give equal bytes.
class ZipWriter {
 public:
  static Result<ZipWriter> create(const std::filesystem::path& path,
                                  EntryNames names = EntryNames::kPaths);
  ZipWriter(ZipWriter&&) noexcept;
  ZipWriter& operator=(ZipWriter&&) noexcept;
  ~ZipWriter();  // Without finish(): leaves nothing behind.

  // Names as a ZipReader of the same EntryNames takes them.
  Status add(std::string_view name, std::string content);
  // The file is read by finish().
  Status add_file(std::string_view name, const std::filesystem::path& file);
  Status finish();

 private:
  struct Impl;
  explicit ZipWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hasten
