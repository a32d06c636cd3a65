// SPDX-License-Identifier: Apache-2.0
// A candidate on its way from proposal to verdict.
#pragma once

#include "backend/worker.h"
#include "record/trial.h"
#include "tune/conversions.h"
#include "tune/original.h"
#include "tune/scouting.h"
#include "tune/workshop.h"

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hasten {

struct Contestant {
  const Scouted* backend = nullptr;
  Trial trial;
  std::optional<Worker> worker;   // Alive and stopped between its turns.
  std::filesystem::path payload;  // What save() wrote.
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;  // Sizes it was made for.
  bool machine_specific = false;
  bool outrun = false;  // Left the last race early, far behind the best.
  bool lossy = false;   // Lower precision, held to what the user allows.

  bool parked = false;  // Ended to save memory; loaded anew for each of its turns.

  bool in_the_race() const { return (worker.has_value() || parked) && !trial.failure; }
  void fail(Stage stage, Error error, TrialStatus status = TrialStatus::kFailed);
  // Does it promise an answer for inputs of these sizes?
  bool covers(const GraphSpec& graph, std::span<const Tensor> inputs) const;
};

// Converts, builds, saves and checks them, in parallel, each in its own child. What
// goes wrong is in the trials.
void build_and_check(Workshop& shop, Conversions& conversions, const Original& original,
                     std::span<Contestant> contestants);

struct CaseAnswer {
  CheckRecord record;
  std::chrono::nanoseconds duration{0};  // Of the call.
};

// One case put to a worker that is at hand. Fails when it could not answer.
Result<CaseAnswer> answer_case(Worker& worker, const Original& original, const CheckCase& one,
                               const TuneOptions& options, bool lossy);

// The error of a candidate whose values were wrong.
Error wrong_result(const CheckRecord& record);

WorkerOptions worker_options(const Workshop& shop, const BackendEntry& backend,
                             const std::filesystem::path& folder);

}  // namespace hasten
