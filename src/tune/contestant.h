// SPDX-License-Identifier: Apache-2.0
// A candidate on its way from proposal to verdict.
#pragma once

#include "backend/worker.h"
#include "record/trial.h"
#include "tune/conversions.h"
#include "tune/original.h"
#include "tune/reservation.h"
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
  Reservation waiting;            // Its memory, while it waits.
  bool parked = false;            // Without a worker: loaded anew for each of its turns.
  std::filesystem::path payload;  // What save() wrote.
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;  // Sizes it was made for.
  bool machine_specific = false;
  bool outrun = false;  // Left the last race early, far behind the best.
  bool lossy = false;   // Lower precision, held to what the user allows.
  std::optional<SweepEnd> end;  // It stands for the sizes below.

  bool in_the_race() const { return worker.has_value() || parked; }
  void leave();  // Ends its child.
  void park();   // So too, to load it anew for each of its turns.
  // Out of the race for good: with an error, or because its figures did not hold.
  void fail(Stage stage, Error error, TrialStatus status = TrialStatus::kFailed);
  void give_way(std::string why);
  // It broke at a batch size. What a limit or a crash ends is its sweep, where it was measured at
  // smaller sizes; anything else, and everything at the first size, is a failure.
  void break_at(int64_t batch_size, Error error);
  // Does it promise an answer for inputs of these sizes?
  bool covers(const GraphSpec& graph, std::span<const Tensor> inputs) const;
  // The first case that it covers; null: there is none.
  const CheckCase* first_case(const Original& original) const;
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
