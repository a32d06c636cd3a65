// SPDX-License-Identifier: Apache-2.0
// Programs that turn one format into another (torch.export, torch.onnx, AOTInductor),
// as children with limits. Known from hasten/compilers/compilers.json in the Python package:
//   [{"name", "from", "to", "module", "cost"}]
// A step is `python -m hasten.compilers.MODULE REQUEST.json` with
//   {"model", "format", "graph", "samples", "options", "output_dir"}
// and writes output_dir/result.json, {"ok": true, "path", "facts": {...}} or
//   {"ok": false, "code": "unsupported|build_failed|...", "message", "hint"}
#pragma once

#include <hasten/result.h>

#include "base/child_process.h"
#include "base/json.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hasten {

struct CompilerEntry {
  std::string name, from, to, module;
  double cost = 1;  // Relative; the cheapest chain is taken.
};

struct CompileRequest {
  std::filesystem::path model;
  std::string format;             // Of `model`.
  Json graph;                     // GraphSpec.
  std::filesystem::path samples;  // Folder of sample-0.npz, ...: arr_0, ... are the inputs.
  std::map<std::string, std::string> options;
  std::filesystem::path work_dir;  // The result and the log go here.
};

struct CompileResult {
  std::filesystem::path path;  // The file in the new format.
  Json facts;                  // What the compiler says: exporter, steps, ranges, warnings.
  double seconds = 0;
};

class Compilers {
 public:
  // A folder without compilers is no error: models that need none are tuned without.
  static Result<Compilers> read(const std::filesystem::path& package_folder);
  // The steps from one format to another; empty when equal; kUnsupported when none.
  Result<std::vector<CompilerEntry>> chain(const std::string& from, const std::string& to) const;
  // The format, of those a backend takes (best first), that a model is or can be turned into.
  // kUnsupported when there is none, kUnavailable when for want of the Python package.
  Result<std::string> reachable(const std::string& from,
                                const std::vector<std::string>& formats) const;
  // What a backend of these formats takes in the end: "ONNX .onnx (also converted from
  // TorchScript .pt, torch.export .pt2)".
  std::string taken(const std::vector<std::string>& formats) const;
  // One step, in work_dir/NAME. Its own error if it gave one, kBuildFailed with every
  // exporter's reason for example; the log is work_dir/NAME.log.
  Result<CompileResult> run(Spawner& spawner, const CompilerEntry& compiler,
                            const CompileRequest& request, const RunLimits& limits) const;

 private:
  std::vector<CompilerEntry> entries_;
  std::filesystem::path package_folder_;
  std::string missing_;  // Why there is none; empty: there is.
};

}  // namespace hasten
