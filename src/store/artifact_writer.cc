// SPDX-License-Identifier: Apache-2.0
#include "store/artifact.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "tensor/npz.h"

#include <algorithm>
#include <stdexcept>

namespace hasten {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string entry;
  fs::path path;
};

// Every file of the payload, in the order of the entries' names.
Result<std::vector<File>> files_of(const std::string& payload, const fs::path& dir) {
  std::vector<File> files;
  std::error_code failure;
  fs::recursive_directory_iterator it(dir, failure);
  for (const fs::recursive_directory_iterator end; !failure && it != end; it.increment(failure)) {
    const fs::file_type type = it->symlink_status(failure).type();
    if (failure) break;
    if (type == fs::file_type::directory) continue;
    if (type != fs::file_type::regular) {
      return Error{Code::kInternal,
                   format("'{}' in a payload is no plain file", it->path().string())};
    }
    files.push_back(
        {payload + "/" + it->path().lexically_relative(dir).generic_string(), it->path()});
  }
  if (failure) return file_error("reading", dir, failure.value());
  std::ranges::sort(files, {}, &File::entry);
  return files;
}

Result<std::vector<File>> write_proofs(const std::vector<ProofSample>& proofs,
                                       const fs::path& folder) {
  std::vector<File> files;
  for (size_t i = 0; i < proofs.size(); ++i) {
    const auto add = [&](std::string_view name, const std::vector<Tensor>& tensors) -> Status {
      files.push_back({format("proofs/{}/{}.npz", i, name), folder / format("{}-{}", i, name)});
      return write_npz(files.back().path, positional(tensors));
    };
    HASTEN_TRY_STATUS(add("inputs", proofs[i].inputs));
    HASTEN_TRY_STATUS(add("outputs", proofs[i].outputs));
  }
  return files;
}

}  // namespace

Status write_artifact(const fs::path& path, Manifest manifest,
                      const std::map<std::string, fs::path>& payload_dirs,
                      const std::vector<ProofSample>& proofs) {
  std::vector<File> files;
  for (const Payload& payload : manifest.payloads) {
    const auto dir = payload_dirs.find(payload.name);
    if (dir == payload_dirs.end()) {
      throw std::logic_error("write_artifact: no folder for payload " + payload.name);
    }
    HASTEN_TRY(const std::vector<File> found, files_of(payload.name, dir->second));
    files.insert(files.end(), found.begin(), found.end());
  }
  // Lives until the archive is written: its files are read only then.
  HASTEN_TRY(const TemporaryFolder folder, TemporaryFolder::create("proofs"));
  HASTEN_TRY(const std::vector<File> found, write_proofs(proofs, folder.path()));
  files.insert(files.end(), found.begin(), found.end());

  manifest.proofs.clear();
  for (const ProofSample& proof : proofs) {
    manifest.proofs.push_back({proof.graph, proof.what, proof.tolerances});
  }
  manifest.sha256.clear();
  for (const File& file : files) {
    HASTEN_TRY(manifest.sha256[file.entry], sha256_of_file(file.path));
  }
  const Json json = manifest.to_json();
  // What could not be read back must not be written.
  HASTEN_TRY(const Manifest read_back, Manifest::from_json(json));

  HASTEN_TRY(ZipWriter zip, ZipWriter::create(path));
  HASTEN_TRY_STATUS(zip.add("manifest.json", json.dump(1) + "\n"));
  for (const File& file : files) HASTEN_TRY_STATUS(zip.add_file(file.entry, file.path));
  return zip.finish();
}

}  // namespace hasten
