// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that host and worker share by descriptor. It is read and written, never
// mapped: a peer that truncates it while we look gives us an error instead of SIGBUS.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "backend/wire.h"
#include "base/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hasten {

class SharedMemory {
 public:
  static Result<SharedMemory> create();
  static SharedMemory of(int fd) { return SharedMemory(FileDescriptor(fd)); }

  int fd() const { return fd_.get(); }
  Result<uint64_t> size() const;
  Status resize(uint64_t size);
  Status write_at(uint64_t offset, const void* data, size_t size);
  Status read_at(uint64_t offset, void* data, size_t size) const;

  // As place() says; the memory grows to fit.
  Status write(std::span<const Tensor> tensors, const Placement& placement);
  // A compact copy.
  Result<Tensor> read(const TensorLayout& layout) const;

 private:
  explicit SharedMemory(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace hasten
