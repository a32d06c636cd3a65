// SPDX-License-Identifier: Apache-2.0
// The model as its owner runs it today: what its answers are, on what inputs a
// candidate has to give the same ones, and how it behaves besides.
#pragma once

#include <hasten/result.h>

#include "backend/worker.h"
#include "check/check.h"
#include "measure/race.h"
#include "model/graph_spec.h"
#include "model/model.h"
#include "model/signature.h"
#include "record/trial.h"
#include "tune/inputs.h"
#include "tune/scouting.h"
#include "tune/workshop.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

std::vector<Tensor> clones(std::span<const Tensor> tensors);

// One call that a candidate has to answer as the original does.
struct CheckCase {
  std::vector<Tensor> inputs;
  std::optional<int64_t> batch_size;
  Reference reference;
  std::chrono::nanoseconds duration{0};  // Of the original's call, where it is one to be measured.
  bool repeats_rows = false;  // Of a sample: what eager's own error is does not show once more.
};

// Where somebody's sweep over the batch sizes ended: at a size that broke it.
struct SweepEnd {
  int64_t batch_size = 1;
  std::string why;
  std::string describe() const;  // "not measured from batch 8 on: it was killed ..."
};

// Rules between the rows of a batch that the original keeps; see row_rules.h.
struct RowRules {
  int64_t rows = 0;  // Of the batch; 0: they are not asked for.
  bool equal_rows = false, split = false;
};

struct Original {
  Model model;
  const Scouted* backend = nullptr;
  Trial trial;  // Its own; candidate, timings.
  // Set after study_original(). A limit or a crash may end it: see at_hand().
  std::optional<Worker> worker;
  std::optional<SweepEnd> end;   // Not asked again from there on; it was measured below.
  GraphSpec graph;               // Inputs and outputs.
  std::vector<Sample> samples;
  std::vector<CheckCase> cases;
  std::vector<std::string> output_names;
  std::vector<OutputTolerance> tolerances;        // One an output.
  std::vector<OutputTolerance> lossy_tolerances;  // The same where lower precision is allowed.
  CallAudit audit;
  bool batch_has_range = false;    // The user gave the sizes of the batch.
  bool repeatable = true;          // Two calls with the same inputs agree.
  bool takes_other_values = true;  // other_values() of its inputs, too.
  RowRules row_rules;
  std::vector<std::string> warnings;
  std::map<int64_t, int64_t> fastest_ns;  // The fastest call at each batch size, over all races.

  // With the calls of this race. None: there were none.
  std::optional<int64_t> fastest_call(int64_t batch_size, const ArmSamples& race);
  const std::vector<OutputTolerance>& tolerances_for(bool lossy) const {
    return lossy ? lossy_tolerances : tolerances;
  }
  bool writes_inputs() const { return !audit.written_inputs.empty(); }
  // The recorded inputs at a batch size, rows cycled.
  std::vector<Tensor> inputs_at(int64_t batch_size) const;
};

// A new child with the original, or a variant of it, built in it. `folder` is scratch.
Result<Worker> build_original(Workshop& shop, const Original& original, const Candidate& candidate,
                              const std::filesystem::path& folder);
// The original's worker, started anew where the last one has ended.
Result<Worker*> at_hand(Workshop& shop, Original& original);

// Two calls of a case, the second with other values where the original takes those, watched.
Result<CallAudit> audit_calls(Worker& worker, const Original& original, const CheckCase& one,
                              std::chrono::nanoseconds timeout);

// Runs the model. Fails when it cannot be built or cannot answer its own samples, and where the
// time for the whole tune ends before it has.
Result<Original> study_original(Workshop& shop, const Model& model, const Scouted& backend,
                                PreparedGraph prepared, const Signature& signature);

}  // namespace hasten
