// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that host and worker share by descriptor. This class reads and writes it and
// never maps it: a peer that truncates it while we look gives us an error instead of SIGBUS. The
// worker in Python does map it; its peer is the host, which waits for its answer.
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
  // What was written of it. The size alone costs whoever sets it nothing.
  Result<uint64_t> allocated() const;
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
