// SPDX-License-Identifier: Apache-2.0
// Tuning from a program: what `hasten tune` does.
//
//   hasten::TuneOptions options{.model = "resnet18.onnx", .inputs = {"image.npz"}};
//   auto report = hasten::tune(options, [](const hasten::TuneEvent& e) { show(e); });
#pragma once

#include <hasten/export.h>
#include <hasten/result.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

enum class StrategyName { kOneBackend, kFirstWins, kMaxThroughput, kMinLatency, kLatencyBudget };

struct TuneOptions {
  std::filesystem::path model{};
  std::vector<std::string> inputs{};  // FILE.npz, or "name=float32[B,3,224,224]".
  StrategyName strategy = StrategyName::kMaxThroughput;
  std::vector<std::string> backends{};  // "NAME" or "NAME:key=value,..."; none: every default.
  std::vector<int64_t> batch_sizes{};   // None: record at 1 and 2, sweep powers of two.
  std::optional<std::chrono::nanoseconds> latency_budget{};
  double min_speedup = 0.01;          // one_backend and first_wins: at least 1 + this.
  bool performance_validation = true; // False: the baseline takes no part in the choice.
  std::optional<double> absolute_tolerance{}, relative_tolerance{};  // None: from eager's own error.
  std::optional<double> allow_lossy{};  // Relative tolerance for lower precision; none: not tried.

  std::optional<std::chrono::nanoseconds> max_time{};      // Of the whole tune.
  std::chrono::nanoseconds build_timeout = std::chrono::minutes(10);
  std::chrono::nanoseconds run_timeout = std::chrono::minutes(1);
  uint64_t memory_limit_bytes = 0;    // Per child; 0: nine tenths of what is available.
  // Of all candidates that wait for a turn; those beyond it are loaded for each turn anew.
  // 0: half of what is available.
  uint64_t waiting_limit_bytes = 0;
  int threads = 0;                    // CPUs to tune for; 0: all that this process may use.
  uint64_t seed = 0;

  std::filesystem::path output{};     // Empty: no artifact.
  // Empty: none. A file is rewritten after each stage, and is there when the tune fails; a pipe
  // or a device gets the last state only.
  std::filesystem::path json{};
  std::vector<std::filesystem::path> plugins{};  // Files or folders to look in first.
  std::stop_token stop{};             // Ends within two seconds; what is finished is kept.
};

// Something a person would like to see now. Called from one thread at a time.
struct TuneEvent {
  enum class Kind {
    kStage,
    kCandidate,
    kProgress,
    kWarning,
    kTable,  // Of a tune that fails after candidates were tried: all lines of TuneReport::table.
  };
  Kind kind = Kind::kStage;
  std::string stage{};      // "inspect", "reference", "build", "check", "measure", "confirm", "save"
  std::string candidate{};  // "onnxruntime:threads=2"; empty for the tune as a whole.
  std::string text{};       // One line.
};
using TuneProgress = std::function<void(const TuneEvent&)>;

struct TuneReport {
  std::string json;       // docs/schema/tune.schema.json
  std::string table;      // For a terminal, without colour.
  bool fell_back = false; // The original model won.
};

// A failed candidate is a trial of the report, no error. Fails with
//   kInvalidArgument  for bad options, a bad model file or bad inputs;
//   kUnavailable      when a backend named in `backends`, or all that run the model as it is,
//                     cannot run here;
//   kUnsupported      when nothing usable was found, or the model itself is not supported;
//   kIo               when a file cannot be read or written, or another tune writes `output`;
//   kCancelled        after `stop`;
//   kBuildFailed, kRunFailed, kOutOfMemory, kTimedOut, kCrashed  of the original model, which
//                     then cannot be compared with;
//   the code of the candidate's own failure (kWrongResult, ...) for kOneBackend.
// kInternal is a bug of hasten.
HASTEN_API Result<TuneReport> tune(const TuneOptions& options, const TuneProgress& progress = {});

}  // namespace hasten
