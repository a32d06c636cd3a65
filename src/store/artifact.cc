// SPDX-License-Identifier: Apache-2.0
#include "store/artifact.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "tensor/npz.h"

#include <algorithm>

namespace hasten {
namespace {

namespace fs = std::filesystem;

// A real artifact has tens of entries and a manifest of some hundred kilobytes; these
// bound what a hostile one can cost before anything of it is believed.
constexpr size_t kMaxEntries = 100'000;
constexpr uint64_t kMaxManifestBytes = 64 << 20;
constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kExpected =
    "an artifact is one file that `hasten tune -o NAME.hasten` wrote; `hasten inspect` says what "
    "a file is";
// Entries up to here are hashed in memory, larger ones through a file.
constexpr uint64_t kInMemory = 16 << 20;

Error bad(const fs::path& path, std::string_view what) {
  return Error{Code::kInvalidArgument, format("{}: {}", path.string(), what),
               "the artifact is damaged or was not written by hasten"};
}

// Entries are stored uncompressed, so all of them together cannot be larger than the file.
// That refuses an archive that would unpack to more than was sent.
Status check_sizes(const fs::path& path, const std::vector<ZipEntry>& entries) {
  if (entries.size() > kMaxEntries) {
    return bad(path, format("has {} entries; at most {} are allowed", entries.size(), kMaxEntries));
  }
  std::error_code failure;
  const uint64_t file_size = fs::file_size(path, failure);
  if (failure) return file_error("reading", path, failure.value());
  uint64_t left = file_size;
  for (const ZipEntry& entry : entries) {
    if (entry.size_bytes > left) {
      return bad(path, format("entry '{}' claims {} in a file of {}", entry.name,
                              human_size(entry.size_bytes), human_size(file_size)));
    }
    left -= entry.size_bytes;
  }
  return {};
}

// Every entry has a hash and every hash an entry.
Status check_entries(const fs::path& path, const ZipReader& zip, const Manifest& manifest) {
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.name != kManifest && !manifest.sha256.contains(entry.name)) {
      return bad(path, format("entry '{}' has no hash in the manifest", entry.name));
    }
  }
  for (const auto& [name, hash] : manifest.sha256) {
    if (!zip.contains(name)) return bad(path, format("entry '{}' is missing", name));
  }
  for (size_t i = 0; i < manifest.proofs.size(); ++i) {
    for (const std::string_view part : {"inputs", "outputs"}) {
      const std::string name = format("proofs/{}/{}.npz", i, part);
      if (!zip.contains(name)) return bad(path, format("entry '{}' is missing", name));
    }
  }
  return {};
}

Result<std::vector<Tensor>> tensors_of(const fs::path& file) {
  HASTEN_TRY(NamedTensors named, read_npz(file));
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : named) tensors.push_back(std::move(tensor));
  return tensors;
}

Status check_proof(const Manifest& manifest, const ProofSample& proof) {
  const auto wrong = [](std::string what) {
    return Error{Code::kInvalidArgument, std::move(what),
                 "the artifact is damaged or was not written by hasten"};
  };
  const auto graph =
      std::ranges::find(manifest.graphs, proof.graph,
                        [](const ArtifactGraph& g) -> const std::string& { return g.spec.name; });
  if (graph == manifest.graphs.end()) {
    return wrong(format("is of graph '{}', which is not there", proof.graph));
  }
  std::vector<DLTensor> views;
  for (const Tensor& input : proof.inputs) views.push_back(input.view());
  if (Status fits = graph->spec.accepts(views); !fits) return wrong(fits.error().message);
  const size_t n_outputs = graph->spec.outputs.size();
  if (proof.outputs.size() != n_outputs || proof.tolerances.items().size() != n_outputs) {
    return wrong(format("has {} outputs and {} tolerances, but graph {} has {} outputs",
                        proof.outputs.size(), proof.tolerances.items().size(), proof.graph,
                        n_outputs));
  }
  return {};
}

}  // namespace

ArtifactFile::ArtifactFile(fs::path path, ZipReader zip, Manifest manifest)
    : path_(std::move(path)), zip_(std::move(zip)), manifest_(std::move(manifest)) {}

Result<ArtifactFile> ArtifactFile::open(const fs::path& path) {
  if (Status file = check_is_file(path); !file) {
    if (fs::is_directory(path)) file.error().hint = kExpected;
    return std::move(file).error();
  }
  HASTEN_TRY(ZipReader zip, ZipReader::open(path));
  HASTEN_TRY_STATUS(check_sizes(path, zip.entries()));
  if (!zip.contains(kManifest)) {
    Error error = bad(path, "is no artifact: it has no manifest.json");
    error.hint = kExpected;
    return error;
  }
  HASTEN_TRY(const std::string text, zip.read(kManifest, kMaxManifestBytes));
  const auto json = Json::parse(text);
  if (!json) return bad(path, format("manifest.json: {}", json.error().message));
  auto manifest = Manifest::from_json(*json);
  if (!manifest) return std::move(manifest).error().within(path.string());
  HASTEN_TRY_STATUS(check_entries(path, zip, *manifest));
  return ArtifactFile(path, std::move(zip), *std::move(manifest));
}

Error ArtifactFile::damaged(const std::string& entry, std::string_view what) const {
  return Error{Code::kInvalidArgument, format("{}: entry '{}' {}", path_.string(), entry, what),
               "the artifact was damaged after it was written; copy or tune it again"};
}

Status ArtifactFile::extract_entry(const ZipEntry& entry, const fs::path& to, bool verify) const {
  HASTEN_TRY_STATUS(make_folder(to.parent_path()));
  HASTEN_TRY_STATUS(zip_.extract(entry.name, to, entry.size_bytes));
  std::error_code failure;
  const uint64_t size = fs::file_size(to, failure);
  if (failure) return file_error("reading", to, failure.value());
  if (size != entry.size_bytes) {
    return damaged(entry.name, format("has {} bytes, not {}", size, entry.size_bytes));
  }
  if (!verify) return {};
  HASTEN_TRY(const std::string hash, sha256_of_file(to));
  if (hash != manifest_.sha256.at(entry.name)) {
    return damaged(entry.name, "does not have the hash that the manifest gives");
  }
  return {};
}

Status ArtifactFile::extract_payload(const std::string& name, const fs::path& dir,
                                     bool verify) const {
  const std::string folder = name + "/";
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.starts_with(folder)) continue;
    const fs::path to = dir / entry.name.substr(folder.size());
    HASTEN_TRY_STATUS(extract_entry(entry, to, verify));
  }
  return {};
}

Status ArtifactFile::verify_hashes() const {
  for (const ZipEntry& entry : zip_.entries()) {
    if (entry.name == kManifest) continue;
    if (entry.size_bytes > kInMemory) {
      HASTEN_TRY(const TemporaryFolder folder, TemporaryFolder::create("verify"));
      HASTEN_TRY_STATUS(extract_entry(entry, folder.path() / "entry", true));
      continue;
    }
    HASTEN_TRY(const std::string content, zip_.read(entry.name, entry.size_bytes));
    if (content.size() != entry.size_bytes || sha256(content) != manifest_.sha256.at(entry.name)) {
      return damaged(entry.name, "does not have the hash that the manifest gives");
    }
  }
  return {};
}

Result<std::vector<ProofSample>> ArtifactFile::proofs() const {
  HASTEN_TRY(const TemporaryFolder folder, TemporaryFolder::create("proofs"));
  HASTEN_TRY_STATUS(extract_payload("proofs", folder.path()));
  std::vector<ProofSample> proofs;
  for (const ProofInfo& info : manifest_.proofs) {
    const fs::path dir = folder.path() / std::to_string(proofs.size());
    ProofSample proof{info.graph, info.what, {}, {}, info.tolerances};
    HASTEN_TRY(proof.inputs, tensors_of(dir / "inputs.npz"));
    HASTEN_TRY(proof.outputs, tensors_of(dir / "outputs.npz"));
    if (Status fits = check_proof(manifest_, proof); !fits) {
      return std::move(fits).error().within(
          format("{}: proof {} ({})", path_.string(), proofs.size(), proof.what));
    }
    proofs.push_back(std::move(proof));
  }
  return proofs;
}

}  // namespace hasten
