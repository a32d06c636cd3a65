// SPDX-License-Identifier: Apache-2.0
// From --input to graphs: files and SPECs become recorded calls, and every axis
// of every input gets its kind. Three sources are joined, the surer one first:
// what the user declared in a SPEC, what the samples show at two or more batch
// sizes, what the model file itself says. Where all three are silent (a format
// without shapes, samples of one batch size), axis 0 is taken for the batch on
// trial: the baseline has to confirm it.
//
// Sizes that the user asks for (batch sizes, ends of ranges) are checked here: against the
// range of the batch, and against the memory there is.
#pragma once

#include <hasten/result.h>

#include "model/recording.h"
#include "model/signature.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hasten {

struct PreparedGraph {
  GraphSpec spec;  // Inputs only.
  std::vector<Sample> samples;
  bool batch_is_guessed = false;  // The baseline has to confirm it.
  bool batch_has_range = false;   // A SPEC gave one: the sizes of the batch are in it.
};

struct PreparedInputs {
  std::vector<PreparedGraph> graphs;
  std::vector<std::string> warnings;
};

// What the inputs of one call may take here. They are held several times, the model's values
// come on top.
uint64_t input_limit_bytes();

struct InputRequest {
  std::vector<std::string> inputs;   // FILE.npz or SPEC.
  std::vector<int64_t> batch_sizes;  // The user's, to record at (SPECs) and to measure at.
  uint64_t seed = 0;
  uint64_t limit_bytes = input_limit_bytes();  // Of the inputs of one call.
};

Result<PreparedInputs> prepare_inputs(const InputRequest& request, const Signature& signature);

}  // namespace hasten
