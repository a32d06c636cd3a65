// SPDX-License-Identifier: Apache-2.0
#include "backend/shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace hasten {
namespace {

Error memory_error(std::string_view what) {
  const int why = errno;
  const bool full = why == ENOSPC || why == ENOMEM;
  return Error{full ? Code::kOutOfMemory : Code::kIo,
               format("shared memory: {}: {}", what, std::strerror(why))};
}

}  // namespace

Result<SharedMemory> SharedMemory::create() {
  const int fd = memfd_create("hasten", MFD_CLOEXEC);
  if (fd < 0) return memory_error("memfd_create");
  return SharedMemory(FileDescriptor(fd));
}

Result<uint64_t> SharedMemory::size() const {
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return memory_error("fstat");
  return static_cast<uint64_t>(info.st_size);
}

Result<uint64_t> SharedMemory::allocated() const {
  constexpr uint64_t kBlock = 512;  // stat(2).
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return memory_error("fstat");
  return kBlock * static_cast<uint64_t>(info.st_blocks);
}

Status SharedMemory::resize(uint64_t size) {
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return memory_error("ftruncate");
  return {};
}

Status SharedMemory::write_at(uint64_t offset, const void* data, size_t size) {
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd_.get(), from, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return memory_error("write");
    from += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return {};
}

Status SharedMemory::read_at(uint64_t offset, void* data, size_t size) const {
  auto* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = pread(fd_.get(), to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return memory_error("read");
    if (n == 0) return Error{Code::kIo, "shared memory: it is shorter than announced"};
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return {};
}

Status SharedMemory::write(std::span<const Tensor> tensors, const Placement& placement) {
  HASTEN_TRY_STATUS(resize(placement.size));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorLayout& layout = placement.layouts[i];
    HASTEN_TRY_STATUS(write_at(layout.offset, tensors[i].data(), layout.nbytes));
  }
  return {};
}

Result<Tensor> SharedMemory::read(const TensorLayout& layout) const {
  if (layout.is_compact()) {
    Tensor tensor = Tensor::empty(layout.dtype, layout.shape);
    HASTEN_TRY_STATUS(read_at(layout.offset, tensor.data(), tensor.nbytes()));
    return tensor;
  }
  // A few bytes with strides of 0 can claim to be any number of elements; a copy of
  // those is only made as far as the memory itself is as large.
  HASTEN_TRY(const uint64_t written, allocated());
  if (element_count(layout.shape) * size_bytes(layout.dtype) > written) {
    return Error{Code::kInternal, "malformed tensor: more elements than bytes"};
  }
  auto storage = std::make_shared<std::vector<std::byte>>(layout.nbytes);
  HASTEN_TRY_STATUS(read_at(layout.offset, storage->data(), storage->size()));
  void* const data = storage->data();
  return Tensor::view_of(layout.dtype, data, layout.shape, layout.strides, std::move(storage))
      .clone();
}

}  // namespace hasten
