// SPDX-License-Identifier: Apache-2.0
// An artifact or a model, ready to answer in a child: what `hasten run MODEL` and
// `hasten bench` work with.
#pragma once

#include <hasten/result.h>

#include "backend/worker.h"
#include "base/child_process.h"
#include "model/graph_spec.h"
#include "model/signature.h"
#include "store/artifact.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

struct RunnableOptions {
  std::filesystem::path work_dir;  // Must exist; scratch.
  std::vector<std::filesystem::path> plugins;
  std::string backend;  // Of a model: NAME[:CONFIG]; empty: its baseline.
  // The inputs that it will get: some models show their outputs in a call only. May be unset.
  std::function<Result<GraphSpec>(const Signature&)> graph_of{};
  int threads = 0;
  std::chrono::nanoseconds timeout{std::chrono::minutes(10)};
  std::stop_token stop{};
};

struct Runnable {
  Worker worker;
  std::string label;                // "onnxruntime:threads=2"
  Signature signature;              // Names, in order.
  std::vector<ProofSample> proofs;  // Of an artifact.
  std::optional<GraphSpec> graph;   // Of an artifact, with its outputs.
  int64_t chosen_batch_size = 1;    // Of an artifact.
  std::vector<std::string> warnings;
};

Result<Runnable> open_runnable(Spawner& spawner, const std::filesystem::path& path,
                               const RunnableOptions& options);

// What match_inputs() needs to know of a recorded graph.
Signature signature_of(const GraphSpec& graph);

}  // namespace hasten
