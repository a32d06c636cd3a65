// SPDX-License-Identifier: Apache-2.0
// The wire format of protobuf, read through a window on a file: no schema, no copy of
// what is skipped. Errors name the byte, not the file.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace hasten {

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;           // kVarint.
  uint64_t begin = 0, end = 0;  // kBytes: where the content lies in the file.
};

class WireReader {
 public:
  static Result<WireReader> open(const std::filesystem::path& path);
  uint64_t size() const { return size_; }
  // Reads the field at `at`, which is moved behind it. The field must end by `end`.
  Result<WireField> next(uint64_t& at, uint64_t end);
  // The content of a kBytes field of at most `limit` bytes.
  Result<std::string> text(const WireField& field, uint64_t limit);

 private:
  WireReader(FileDescriptor file, uint64_t size);
  Result<uint64_t> varint(uint64_t& at, uint64_t end);
  Status fill(uint64_t at);  // Makes the byte at `at` part of the window.
  Error damaged(uint64_t at, const std::string& what) const;

  FileDescriptor file_;
  uint64_t size_;
  uint64_t window_begin_ = 0;
  std::vector<char> window_;
  size_t window_size_ = 0;
};

}  // namespace hasten
