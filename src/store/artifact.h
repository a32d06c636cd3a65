// SPDX-License-Identifier: Apache-2.0
// NAME.hasten: one zip, stored, with manifest.json and a folder of payload per candidate.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"
#include "base/zip.h"
#include "model/graph_spec.h"
#include "record/candidate.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hasten {

constexpr int kArtifactSchema = 1;

// Where a payload may be used.
struct Route {
  std::string payload;  // Name of a payload.
  std::map<std::string, std::pair<int64_t, int64_t>>
      ranges;  // Symbol -> sizes it was proved for; absent: any.
};

struct Payload {
  std::string name;  // Folder in the archive: "payload/0".
  Candidate candidate;
  std::string library_version;
  std::vector<std::string> instruction_sets;  // Of the machine that built it; empty: portable.
};

// kUnavailable when it needs what a CPU with these `instruction_sets` lacks. To be asked before
// any code of it is loaded: a missing instruction kills the process.
Status check_cpu(const Payload& payload, const std::vector<std::string>& instruction_sets);

struct ArtifactGraph {
  GraphSpec spec;
  std::vector<Route> routes;  // In order of preference; the first that can run and fits answers.
};

// A sample with the original's answer that the archive carries.
struct ProofInfo {
  std::string graph, what;
  Json tolerances;  // One {"absolute","relative"} an output.
};

struct Manifest {
  int schema = kArtifactSchema;
  std::vector<ArtifactGraph> graphs;
  std::vector<Payload> payloads;
  Json report;  // The tune report: strategy, trials, winner, tolerances, environment.
  std::vector<ProofInfo> proofs;  // Number N lies in "proofs/N/". Set by write_artifact().
  std::map<std::string, std::string> sha256;  // Entry -> hash; every entry but the manifest.
  Json to_json() const;
  // A newer schema is kUnsupported; what names no payload that is there, or leads out of
  // the archive, is kInvalidArgument.
  static Result<Manifest> from_json(const Json& json);
};

// A sample with the original's answer, for `hasten verify`.
struct ProofSample {
  std::string graph, what;
  std::vector<Tensor> inputs, outputs;
  Json tolerances;  // One {"absolute","relative"} an output.
};

// `payload_dirs`: payload name -> folder with its files. Equal arguments give equal bytes.
// `manifest.sha256` and `manifest.proofs` are filled in here.
Status write_artifact(const std::filesystem::path& path, Manifest manifest,
                      const std::map<std::string, std::filesystem::path>& payload_dirs,
                      const std::vector<ProofSample>& proofs);

class ArtifactFile {
 public:
  // Reads and validates the manifest: schema number, entry names, hashes for every entry.
  static Result<ArtifactFile> open(const std::filesystem::path& path);

  const Manifest& manifest() const { return manifest_; }
  // Unpacks one payload into `dir`, checking each file's size and, with `verify`, its hash
  // on the way. Errors name the entry. From one thread at a time.
  Status extract_payload(const std::string& name, const std::filesystem::path& dir,
                         bool verify = true) const;
  Status verify_hashes() const;  // Every entry.
  // Each fits its graph, and has a tolerance for every output.
  Result<std::vector<ProofSample>> proofs() const;

 private:
  ArtifactFile(std::filesystem::path path, ZipReader zip, Manifest manifest);
  Status extract_entry(const ZipEntry& entry, const std::filesystem::path& to, bool verify) const;
  Error damaged(const std::string& entry, std::string_view what) const;
  std::filesystem::path path_;
  ZipReader zip_;
  Manifest manifest_;
};

}  // namespace hasten
