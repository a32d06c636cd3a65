// SPDX-License-Identifier: Apache-2.0
// All that a tune found out: what report/ prints and `--json` writes.
#pragma once

#include "base/json.h"
#include "record/environment.h"
#include "record/trial.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hasten {

struct WinnerRecord {
  std::string graph = "0";
  Candidate candidate;
  int64_t selected_batch_size = 1;
  double throughput = 0;            // Rows per second.
  double latency_ms = 0;            // Median.
  std::optional<Interval> speedup;  // Over the original, measured anew in fresh processes.
  bool fell_back = false;           // The original was kept for want of a better one.
  bool passed = false;              // The gate of the strategy.
  std::string why;
  std::string doubt;  // Why the speed-up may be none; empty: nothing says so.
};

struct GraphRecord {
  std::string name = "0";
  std::vector<std::string> inputs, outputs;  // "image float32[B=1..2,3,224,224]"
  std::vector<std::string>
      tolerances;  // One an output: "logits: 1e-5 + 1e-4 x |expected| (16 x ...)"
  Trial baseline;
  std::vector<Trial> trials;
  std::optional<WinnerRecord> winner;  // None: the strategy failed, see `error`.
};

struct TuneRecord {
  Environment environment;
  Json model;                       // path, format, fingerprint, size_bytes
  Json strategy;                    // name and its settings
  std::vector<GraphRecord> graphs;  // At least one once the original has been run.
  std::vector<std::string> warnings;
  std::optional<std::string> error;  // Why the tune as a whole has no result.
  std::string artifact;              // Path; empty: none was written.
  std::string journal;               // Path; empty: none.
  double total_s = 0;
  double harness_s = 0;  // Wall time outside children's builds and measured turns.

  // The top-level `trials` are those of all graphs (each names its graph), `baseline` and
  // `winner` those of the first graph; `graphs` has them for each.
  Json to_json() const;  // docs/schema/tune.schema.json
};

}  // namespace hasten
