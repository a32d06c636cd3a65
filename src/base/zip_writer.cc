// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <stdexcept>
#include <string>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"
#include "base/zip.h"
#include "base/zip_internal.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

// 1980-01-01 00:00, the oldest time that the format can say.
constexpr zip_uint16_t kDosTime = 0;
constexpr zip_uint16_t kDosDate = (1 << 5) | 1;
// An archive without entries: the end record alone. libzip would write no file at all.
constexpr std::string_view kEmptyArchive("PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);

}  // namespace

struct ZipWriter::Impl {
  fs::path path;  // As the caller named it.
  fs::path target;
  fs::path temporary;
  EntryNames names = EntryNames::kPaths;
  ZipHandle archive;
  std::deque<std::string> contents;  // libzip reads them when it closes.
  bool is_empty = true;

  ~Impl() {
    archive.reset();
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
  Error failure(zip_error_t* error, std::string_view what) const {
    // The system's error, where there is one, has the better sentence and the remedy.
    if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error) != 0) {
      return file_error("writing", path, zip_error_code_system(error));
    }
    return {Code::kIo,
            format("writing '{}': {}: {}", path.string(), what, zip_error_strerror(error))};
  }
  Status add(std::string_view name, zip_source_t* source, zip_error_t* source_failure);
};

// Takes `source`, whose failure stands in `source_failure` when it is null.
Status ZipWriter::Impl::add(std::string_view name, zip_source_t* source,
                            zip_error_t* source_failure) {
  if (!source) return failure(source_failure, name);
  const std::string text(name);
  const zip_int64_t index = zip_file_add(archive.get(), text.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    zip_error_t* error = zip_get_error(archive.get());
    if (zip_error_code_zip(error) == ZIP_ER_EXISTS) {
      return Error{Code::kInvalidArgument,
                   format("writing '{}': entry '{}' stands twice", path.string(), name)};
    }
    return failure(error, name);
  }
  is_empty = false;
  const auto at = static_cast<zip_uint64_t>(index);
  constexpr zip_uint32_t kPlainFile = zip_uint32_t{S_IFREG | 0644} << 16;
  if (zip_set_file_compression(archive.get(), at, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive.get(), at, kDosTime, kDosDate, 0) != 0 ||
      zip_file_set_external_attributes(archive.get(), at, 0, ZIP_OPSYS_UNIX, kPlainFile) != 0) {
    return failure(zip_get_error(archive.get()), name);
  }
  return {};
}

ZipWriter::ZipWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZipWriter::ZipWriter(ZipWriter&&) noexcept = default;
ZipWriter& ZipWriter::operator=(ZipWriter&&) noexcept = default;
ZipWriter::~ZipWriter() = default;

Result<ZipWriter> ZipWriter::create(const fs::path& path, EntryNames names) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->names = names;
  HASTEN_TRY(impl->target, write_target(path));
  if (!is_replaceable(impl->target)) return not_replaceable(path);
  HASTEN_TRY_STATUS(check_writable(impl->target.parent_path()));
  impl->temporary = temporary_name_beside(impl->target);
  int code = 0;
  impl->archive.reset(zip_open(impl->temporary.c_str(), ZIP_CREATE | ZIP_EXCL, &code));
  if (!impl->archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    Error failure = impl->failure(&error, "opening");
    zip_error_fini(&error);
    return failure;
  }
  return ZipWriter(std::move(impl));
}

Status ZipWriter::add(std::string_view name, std::string content) {
  if (const std::string fault = fault_of_entry_name(name, impl_->names); !fault.empty()) {
    return Error{Code::kInvalidArgument, format("the entry name '{}' {}", name, fault)};
  }
  const std::string& kept = impl_->contents.emplace_back(std::move(content));
  zip_error_t error;
  zip_error_init(&error);
  Status added =
      impl_->add(name, zip_source_buffer_create(kept.data(), kept.size(), 0, &error), &error);
  zip_error_fini(&error);
  return added;
}

Status ZipWriter::add_file(std::string_view name, const fs::path& file) {
  if (const std::string fault = fault_of_entry_name(name, impl_->names); !fault.empty()) {
    return Error{Code::kInvalidArgument, format("the entry name '{}' {}", name, fault)};
  }
  // libzip opens it at the end only; a missing file should be named at once.
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) return file_error("reading", file, errno);
  if (!S_ISREG(facts.st_mode)) {
    return Error{Code::kInvalidArgument, format("'{}' is no plain file", file.string())};
  }
  if (::access(file.c_str(), R_OK) != 0) return file_error("reading", file, errno);
  zip_error_t error;
  zip_error_init(&error);
  Status added = impl_->add(name, zip_source_file_create(file.c_str(), 0, -1, &error), &error);
  zip_error_fini(&error);
  return added;
}

Status ZipWriter::finish() {
  if (!impl_->archive) throw std::logic_error("ZipWriter::finish() was called twice");
  if (impl_->is_empty) {
    impl_->archive.reset();
    return write_file_atomically(impl_->path, kEmptyArchive);
  }
  if (zip_close(impl_->archive.get()) != 0) {
    return impl_->failure(zip_get_error(impl_->archive.get()), "closing");
  }
  impl_->archive.release();  // zip_close() has freed it.
  return commit_file(impl_->temporary, impl_->target);
}

}  // namespace hasten
