// SPDX-License-Identifier: Apache-2.0
#include "store/journal.h"

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <mutex>
#include <sys/types.h>
#include <unistd.h>

namespace hasten {

struct Journal::Impl {
  std::filesystem::path path;
  FileDescriptor file;
  std::mutex mutex;
  uint64_t size = 0;  // Of the whole lines.
};

Result<Journal> Journal::create(const std::filesystem::path& path) {
  HASTEN_TRY(FileDescriptor file, open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND));
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

Result<std::vector<Json>> read_journal(const std::filesystem::path& path) {
  HASTEN_TRY(const std::string text, read_file(path));
  std::vector<Json> records;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    ++number;
    const size_t newline = text.find('\n', begin);
    const bool torn = newline == std::string::npos;
    const size_t end = torn ? text.size() : newline;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    auto record = Json::parse(line);
    if (record && record->is_object()) {
      records.push_back(*std::move(record));
    } else if (!torn) {
      return Error{Code::kInvalidArgument,
                   format("'{}': line {} is no record of a journal", path.string(), number),
                   "the file is damaged or of another kind"};
    }
  }
  return records;
}

}  // namespace hasten
