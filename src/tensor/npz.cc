// SPDX-License-Identifier: Apache-2.0
#include "tensor/npz.h"

#include <set>

#include "base/files.h"
#include "base/text.h"
#include "base/zip.h"

namespace hasten {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kSuffix = ".npy";

// What numpy.load calls an array that was saved without a name.
constexpr std::string_view kUnnamed = "arr_0";

Result<NamedTensors> read_plain(const std::filesystem::path& path) {
  HASTEN_TRY(const std::string bytes, read_file(path));
  Result<Tensor> tensor = from_npy(bytes);
  if (!tensor) return std::move(tensor).error().within(path.string());
  NamedTensors tensors;
  tensors.emplace_back(kUnnamed, *std::move(tensor));
  return tensors;
}

Result<Tensor> read_entry(const ZipReader& zip, const ZipEntry& entry) {
  HASTEN_TRY(const std::string bytes, zip.read(entry.name, entry.size_bytes));
  return from_npy(bytes);
}

}  // namespace

Result<NamedTensors> read_npz(const std::filesystem::path& path) {
  HASTEN_TRY_STATUS(check_is_file(path));
  HASTEN_TRY(const std::string start, read_prefix(path, kNpyMagic.size()));
  if (start == kNpyMagic) return read_plain(path);
  if (!start.starts_with("PK")) {
    return Error{Code::kInvalidArgument,
                 path.string() + " is neither an .npz archive nor an .npy array",
                 "numpy.savez(path, name=array, ...) writes one"};
  }
  HASTEN_TRY(const ZipReader zip, ZipReader::open(path, EntryNames::kAny));
  NamedTensors tensors;
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kSuffix)) {
      return Error{Code::kInvalidArgument,
                   format("{}: the entry '{}' is no .npy array", path.string(), entry.name)};
    }
    std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    Result<Tensor> tensor = read_entry(zip, entry);
    if (!tensor) {
      // Here it is the caller's file that is at fault, not a feature that is missing.
      if (tensor.error().code == Code::kUnsupported) tensor.error().code = Code::kInvalidArgument;
      return std::move(tensor).error().within(format("{}: array '{}'", path.string(), name));
    }
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

NamedTensors positional(std::span<const Tensor> tensors) {
  NamedTensors named;
  for (const Tensor& tensor : tensors) {
    named.emplace_back(format("arr_{}", named.size()), tensor.clone());
  }
  return named;
}

Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || !names.insert(name).second) {
      return Error{
          Code::kInvalidArgument,
          format("{}: two arrays, or one without a name, are called '{}'", path.string(), name)};
    }
  }
  HASTEN_TRY(ZipWriter zip, ZipWriter::create(path, EntryNames::kAny));
  for (const auto& [name, tensor] : tensors) {
    HASTEN_TRY_STATUS(zip.add(name + std::string(kSuffix), to_npy(tensor)));
  }
  return zip.finish();
}

}  // namespace hasten
