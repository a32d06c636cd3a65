// SPDX-License-Identifier: Apache-2.0
#include "store/journal.h"

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace hasten {

struct Journal::Impl {
  std::filesystem::path path;
  FileDescriptor file;
  std::mutex mutex;
  uint64_t size = 0;  // Of the whole lines.
};

std::filesystem::path journal_path(const std::filesystem::path& artifact) {
  std::filesystem::path path = artifact;
  path += ".journal.jsonl";
  return path;
}

Result<Journal> Journal::create(const std::filesystem::path& path) {
  HASTEN_TRY(FileDescriptor file, open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error("locking", path, errno);
    return Error{Code::kIo, format("another process is writing '{}'", path.string()),
                 "wait for its end, or name another output"};
  }
  // Only now: it may be another's.
  if (::ftruncate(file.get(), 0) != 0) return file_error("writing", path, errno);
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->file = std::move(file);
  return Journal(std::move(impl));
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

const std::filesystem::path& Journal::path() const { return impl_->path; }

Status Journal::append(std::string_view kind, Json record) {
  Json line = Json::object({{"kind", kind}, {"at", utc_timestamp()}});
  for (const auto& [key, value] : record.members()) {
    if (!line.contains(key)) line.set(key, value);
  }
  const std::string text = line.dump() + "\n";
  const std::lock_guard lock(impl_->mutex);
  // write() hands the line to the kernel: it survives our death, and that is what the
  // journal is for. A sync per line would cost a measurement its quiet disk.
  if (Status written = write_all(impl_->file, text, impl_->path); !written) {
    // Half a line in the middle would make all that follows unreadable.
    if (::ftruncate(impl_->file.get(), static_cast<off_t>(impl_->size)) != 0) {
      return Error{Code::kIo, written.error().message + "; the journal is torn"};
    }
    return written;
  }
  impl_->size += text.size();
  return {};
}

}  // namespace hasten
