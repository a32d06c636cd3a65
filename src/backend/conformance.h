// SPDX-License-Identifier: Apache-2.0
// Does a plugin keep the contract of hasten/plugin.h? Every check that runs its code
// does so in a worker, so that a crash or a hang is the result of one check.
#pragma once

#include <hasten/tensor.h>

#include "backend/registry.h"
#include "base/child_process.h"
#include "base/json.h"
#include "tensor/difference.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hasten {

struct ConformanceModel {
  std::filesystem::path path;
  std::string format;                           // One that the plugin builds from.
  Json graph = Json::object();                  // GraphSpec; "{}" when unknown.
  std::vector<std::vector<Tensor>> samples{};   // Inputs, of batch size 1 and another at best.
  std::vector<std::vector<Tensor>> expected{};  // Outputs of the samples{}; empty: not compared.
  Tolerance tolerance{};                        // Against `expected`, and between memory layouts.
  std::map<std::string, std::string> config{};
};

struct ConformanceResult {
  std::string name;  // "save, load, run: m.onnx"
  bool passed = false, skipped = false;
  std::string detail;  // Why it failed or was skipped; else what was seen.
};

struct ConformanceOptions {
  std::filesystem::path work_dir;  // Must exist; logs stay there.
  int threads = 1;
  std::chrono::nanoseconds timeout = std::chrono::minutes(2);  // Of one check.
  std::function<void(const ConformanceResult&)> after_check = {};
};

// Without models, the checks that need one are skipped and say so. A backend that cannot
// work on this machine passes what can be checked without it.
std::vector<ConformanceResult> run_conformance(Spawner& spawner, const BackendEntry& backend,
                                               std::span<const ConformanceModel> models,
                                               const ConformanceOptions& options);

// Are these legal? The error says what is not. Also used on what plugins answer in `hasten tune`.
Status check_description(const Json& description);
Status check_candidates(const Json& candidates, const Json& description);

}  // namespace hasten
