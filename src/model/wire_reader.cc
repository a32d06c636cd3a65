// SPDX-License-Identifier: Apache-2.0
#include "model/wire_reader.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace hasten {
namespace {

// Large enough that a graph of a hundred thousand small nodes costs few system calls,
// small enough that jumping over weights reads little for nothing.
constexpr size_t kWindow = 64 * 1024;

}  // namespace

Result<WireReader> WireReader::open(const std::filesystem::path& path) {
  HASTEN_TRY(FileDescriptor file, open_regular_file(path, O_RDONLY));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return file_error("reading", path, errno);
  return WireReader(std::move(file), static_cast<uint64_t>(info.st_size));
}

WireReader::WireReader(FileDescriptor file, uint64_t size)
    : file_(std::move(file)), size_(size), window_(kWindow) {}

Error WireReader::damaged(uint64_t at, const std::string& what) const {
  return Error{Code::kInvalidArgument, format("at byte {}: {}", at, what)};
}

Status WireReader::fill(uint64_t at) {
  if (at >= window_begin_ && at < window_begin_ + window_size_) return {};
  ssize_t got = 0;
  do {
    got = ::pread(file_.get(), window_.data(), window_.size(), static_cast<off_t>(at));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Error{Code::kIo, std::strerror(errno)};
  if (got == 0) return damaged(at, "the file has become shorter while it was read");
  window_begin_ = at;
  window_size_ = static_cast<size_t>(got);
  return {};
}

Result<uint64_t> WireReader::varint(uint64_t& at, uint64_t end) {
  const uint64_t begin = at;
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at >= end) return damaged(begin, "a number is cut off");
    HASTEN_TRY_STATUS(fill(at));
    const auto byte = static_cast<unsigned char>(window_[at - window_begin_]);
    ++at;
    value |= static_cast<uint64_t>(byte & 0x7f) << (shift < 64 ? shift : 63);
    if ((byte & 0x80) == 0) return value;
  }
  return damaged(begin, "a number has more than ten bytes");
}

Result<WireField> WireReader::next(uint64_t& at, uint64_t end) {
  const uint64_t begin = at;
  HASTEN_TRY(const uint64_t tag, varint(at, end));
  WireField field;
  field.number = static_cast<uint32_t>(tag >> 3);
  if (field.number == 0 || tag >> 32 != 0) return damaged(begin, "no protobuf field starts here");
  uint64_t length = 0;
  switch (tag & 7) {
    case 0: {
      field.type = WireType::kVarint;
      HASTEN_TRY(field.value, varint(at, end));
      return field;
    }
    case 1:
      field.type = WireType::kFixed64;
      length = 8;
      break;
    case 5:
      field.type = WireType::kFixed32;
      length = 4;
      break;
    case 2: {
      field.type = WireType::kBytes;
      HASTEN_TRY(length, varint(at, end));
      break;
    }
    default:
      return damaged(begin, "no protobuf field starts here");
  }
  if (length > end - at) {
    return damaged(begin, format("field {} claims {} bytes, but only {} are left", field.number,
                                 length, end - at));
  }
  field.begin = at;
  field.end = at += length;
  return field;
}

Result<std::string> WireReader::text(const WireField& field, uint64_t limit) {
  const uint64_t length = field.end - field.begin;
  if (field.type != WireType::kBytes || length > limit) {
    return damaged(field.begin,
                   format("field {} is no text of at most {} bytes", field.number, limit));
  }
  std::string out;
  out.reserve(length);
  for (uint64_t at = field.begin; at < field.end;) {
    HASTEN_TRY_STATUS(fill(at));
    const size_t offset = at - window_begin_;
    const size_t n = std::min<uint64_t>(field.end - at, window_size_ - offset);
    out.append(window_.data() + offset, n);
    at += n;
  }
  return out;
}

}  // namespace hasten
