// SPDX-License-Identifier: Apache-2.0
// A trial: all that happened to one candidate. The spine of hasten: written by
// tune/, printed by report/, kept by store/, read by strategy/.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"
#include "record/candidate.h"
#include "record/interval.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hasten {

enum class TrialStatus {
  kOk,           // Built, correct, measured.
  kFailed,       // A build, a run or a limit; see Failure.
  kRejected,     // It ran, and its values were wrong.
  kUnavailable,  // Its backend cannot work on this machine, or takes no such model.
  kDropped,      // Correct, but left out of the race or never measured.
};
std::string_view to_string(TrialStatus status);  // "ok", "failed", "rejected", ...
std::optional<TrialStatus> trial_status_from_string(std::string_view word);

enum class Stage { kProbe, kConvert, kBuild, kCheck, kMeasure, kConfirm };
std::string_view to_string(Stage stage);  // "probe", "convert", "build", ...
std::optional<Stage> stage_from_string(std::string_view word);

struct Failure {
  Stage stage = Stage::kBuild;
  Error error;
};

// Of a candidate against the baseline at one batch size.
enum class Verdict { kFaster, kSlower, kSame, kCannotTell };
std::string_view to_string(Verdict verdict);  // "faster", "slower", "same", "cannot_tell"
std::optional<Verdict> verdict_from_string(std::string_view word);

struct WorstDeviation {
  std::string output;
  Shape index;
  double absolute = 0, relative = 0, limit = 0;
};

struct CheckRecord {
  bool passed = false;
  std::optional<WorstDeviation> worst;  // None: nothing could be compared.
  std::string rule;     // That failed: "values", "shape", "dtype", "repeat", ... Empty: none.
  std::string message;  // What was found there, in one sentence. Empty: nothing failed.
  std::vector<std::string> checked;  // "sample 0 at batch 7 (not recorded)", ...

  Json to_json() const;
  static CheckRecord from_json(const Json& json);
};

struct Point {
  int64_t batch_size = 1;
  double throughput = 0;            // Rows per second: batch_size / median latency.
  Interval latency_ms;              // Median over calls, with its interval.
  std::optional<Interval> speedup;  // Baseline time / own time; none without a baseline.
  Verdict verdict = Verdict::kCannotTell;
  size_t calls = 0, rounds = 0;
  std::string doubt{};      // Why the speed-up may be none, in a sentence. Empty: nothing says so.
  bool left_early = false;  // Far behind the best; then the rounds may be too few for a verdict.

  // Throughput and latency are finite and above zero: the point says something.
  bool measured() const;
  Json to_json() const;
  static Result<Point> from_json(const Json& json);
};

struct Trial {
  Candidate candidate;
  std::string version;  // Of the library that the backend wraps.
  std::string graph = "0";
  TrialStatus status = TrialStatus::kDropped;
  std::optional<Failure> failure;
  std::string repeat_command;  // Repeats this trial alone, from a shell.
  std::optional<CheckRecord> check;
  std::vector<Point> points;
  double build_s = 0;  // Conversion included when this trial paid for it.
  double first_call_ms = 0;
  std::optional<uint64_t> peak_memory_bytes, artifact_bytes;
  std::string note;  // Why it was dropped, and the like.

  const Point* at(int64_t batch_size) const;  // None: not measured at that size.
  // The fields of docs/schema/tune.schema.json; what is absent (or NaN) is null.
  Json to_json() const;
  static Result<Trial> from_json(const Json& json);
};

}  // namespace hasten
