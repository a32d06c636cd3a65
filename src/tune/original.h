// SPDX-License-Identifier: Apache-2.0
// The model as its owner runs it today: what its answers are, on what inputs a
// candidate has to give the same ones, and how it behaves besides.
#pragma once

#include <hasten/result.h>

#include "backend/worker.h"
#include "check/check.h"
#include "model/graph_spec.h"
#include "model/model.h"
#include "model/signature.h"
#include "record/trial.h"
#include "tune/inputs.h"
#include "tune/scouting.h"
#include "tune/workshop.h"

#include <cstdint>
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
};

struct Original {
  const Scouted* backend = nullptr;
  Trial trial;                   // Its own; candidate, timings.
  std::optional<Worker> worker;  // Set after study_original().
  GraphSpec graph;               // Inputs and outputs.
  std::vector<Sample> samples;
  std::vector<CheckCase> cases;
  std::vector<std::string> output_names;
  std::vector<OutputTolerance> tolerances;        // One an output.
  std::vector<OutputTolerance> lossy_tolerances;  // The same where lower precision is allowed.
  CallAudit audit;
  bool batch_has_range = false;  // The user gave the sizes of the batch.
  bool repeatable = true;        // Two calls with the same inputs agree.
  std::vector<std::string> warnings;

  bool writes_inputs() const { return !audit.written_inputs.empty(); }
  // The recorded inputs at a batch size, rows cycled.
  std::vector<Tensor> inputs_at(int64_t batch_size) const;
};

// Runs the model. Fails when it cannot be built or cannot answer its own samples.
Result<Original> study_original(Workshop& shop, const Model& model, const Scouted& backend,
                                PreparedGraph prepared, const Signature& signature);

}  // namespace hasten
