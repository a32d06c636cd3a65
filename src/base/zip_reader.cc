// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/text.h"
#include "base/zip.h"
#include "base/zip_internal.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

constexpr size_t kChunk = size_t{1} << 20;

struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Error damaged(const fs::path& path, std::string_view what) {
  return {Code::kInvalidArgument, format("'{}' is no whole zip archive: {}", path.string(), what),
          "the file is damaged, cut short or of another kind; copy or make it again"};
}

// Folders and plain files are all that we unpack; a link could lead outside.
bool is_special(zip_t* archive, zip_uint64_t index) {
  zip_uint8_t system = 0;
  zip_uint32_t attributes = 0;
  if (zip_file_get_external_attributes(archive, index, 0, &system, &attributes) != 0) return true;
  if (system != ZIP_OPSYS_UNIX) return false;
  const mode_t kind = (attributes >> 16) & S_IFMT;
  return kind != 0 && kind != S_IFREG && kind != S_IFDIR;
}

}  // namespace

std::string fault_of_entry_name(std::string_view name, EntryNames names) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "contains a zero byte";
  if (names == EntryNames::kAny) return {};
  if (name.front() == '/') return "is absolute";
  for (const std::string& part : split(name, '/')) {
    if (part == "..") return "leads outside";
    if (part == "." || part.empty()) return "is not in its shortest form";
  }
  return {};
}

struct ZipReader::Impl {
  fs::path path;
  ZipHandle archive;
  std::vector<ZipEntry> entries;
  std::map<std::string, zip_uint64_t, std::less<>> index;

  Status list(EntryNames names);
  Error failure(std::string_view name, std::string_view what) const {
    return {Code::kInvalidArgument, format("'{}': entry '{}' {}", path.string(), name, what)};
  }
  // Hands the content to `take` in pieces, never more than `limit` bytes.
  Status stream(std::string_view name, uint64_t limit,
                const std::function<Status(std::string_view)>& take) const;
};

Status ZipReader::Impl::list(EntryNames names) {
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<zip_uint64_t>(i);
    zip_stat_t facts;
    if (zip_stat_index(archive.get(), at, 0, &facts) != 0 || !(facts.valid & ZIP_STAT_NAME) ||
        !(facts.valid & ZIP_STAT_SIZE)) {
      return damaged(path, zip_strerror(archive.get()));
    }
    std::string name = facts.name;
    const bool is_folder = name.size() > 1 && name.back() == '/';
    const std::string fault = fault_of_entry_name(
        is_folder ? std::string_view(name).substr(0, name.size() - 1) : name, names);
    if (!fault.empty()) return failure(name, "has a name that " + fault);
    if (is_special(archive.get(), at)) return failure(name, "is a link or a device");
    if (is_folder) continue;
    if (!index.emplace(name, at).second) return failure(name, "stands twice");
    entries.push_back({std::move(name), facts.size});
  }
  return {};
}

Status ZipReader::Impl::stream(std::string_view name, uint64_t limit,
                               const std::function<Status(std::string_view)>& take) const {
  const auto found = index.find(name);
  if (found == index.end()) return failure(name, "does not exist");
  const std::unique_ptr<zip_file_t, CloseEntry> file(
      zip_fopen_index(archive.get(), found->second, 0));
  if (!file) return failure(name, format("cannot be read: {}", zip_strerror(archive.get())));
  std::string buffer(kChunk, '\0');
  uint64_t total = 0;
  while (true) {
    const zip_int64_t got = zip_fread(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return failure(name,
                     format("is damaged: {}", zip_error_strerror(zip_file_get_error(file.get()))));
    }
    if (got == 0) return {};
    total += static_cast<uint64_t>(got);
    if (total > limit) return failure(name, format("is larger than {}", human_size(limit)));
    HASTEN_TRY_STATUS(take(std::string_view(buffer.data(), static_cast<size_t>(got))));
  }
}

ZipReader::ZipReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZipReader::ZipReader(ZipReader&&) noexcept = default;
ZipReader& ZipReader::operator=(ZipReader&&) noexcept = default;
ZipReader::~ZipReader() = default;

Result<ZipReader> ZipReader::open(const fs::path& path, EntryNames names) {
  // Asked first: libzip takes an empty file for an archive without entries, and its own
  // messages for these do not say more than "read error".
  HASTEN_TRY(const FileDescriptor file, open_regular_file(path, O_RDONLY));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return file_error("reading", path, errno);
  if (facts.st_size == 0) return damaged(path, "it is empty");

  auto impl = std::make_unique<Impl>();
  impl->path = path;
  int code = 0;
  impl->archive.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!impl->archive) {
    zip_error_t failure;
    zip_error_init_with_code(&failure, code);
    const std::string text = zip_error_strerror(&failure);
    zip_error_fini(&failure);
    return damaged(path, text);
  }
  HASTEN_TRY_STATUS(impl->list(names));
  return ZipReader(std::move(impl));
}

const std::vector<ZipEntry>& ZipReader::entries() const { return impl_->entries; }

bool ZipReader::contains(std::string_view name) const { return impl_->index.contains(name); }

Result<std::string> ZipReader::read(std::string_view name, uint64_t limit) const {
  std::string content;
  HASTEN_TRY_STATUS(impl_->stream(name, limit, [&](std::string_view piece) -> Status {
    content += piece;
    return {};
  }));
  return content;
}

Status ZipReader::extract(std::string_view name, const fs::path& to, uint64_t limit) const {
  HASTEN_TRY(const FileDescriptor file, open_file(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  Status written = impl_->stream(
      name, limit, [&](std::string_view piece) { return write_all(file, piece, to); });
  // Half a file would look like a whole one to the next reader.
  if (!written) ::unlink(to.c_str());
  return written;
}

}  // namespace hasten
