// SPDX-License-Identifier: Apache-2.0
// From --input to graphs: files and SPECs become recorded calls, and every axis
// of every input gets its kind. Three sources are joined, the surer one first:
// what the user declared in a SPEC, what the samples show at two or more batch
// sizes, what the model file itself says. Where all three are silent (a format
// without shapes, samples of one batch size), axis 0 is taken for the batch on
// trial: the baseline has to confirm it.
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
};

struct PreparedInputs {
  std::vector<PreparedGraph> graphs;
  std::vector<std::string> warnings;
};

struct InputRequest {
  std::vector<std::string> inputs;   // FILE.npz or SPEC.
  std::vector<int64_t> batch_sizes;  // To record at, for SPECs; not empty.
  uint64_t seed = 0;
};

Result<PreparedInputs> prepare_inputs(const InputRequest& request, const Signature& signature);

}  // namespace hasten
