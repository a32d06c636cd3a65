// SPDX-License-Identifier: Apache-2.0
// Rules that need no reference: what must hold between calls of one candidate. Each is
// asked of the original first; where the original breaks one (a batch norm that is
// training, a random layer), it says nothing about a candidate.
#pragma once

#include <hasten/tensor.h>

#include "check/check.h"
#include "record/trial.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hasten {

// Two calls with the same inputs. Within the tolerance: threads may add up in any order.
// Rule "repeat".
CheckRecord check_repeat(std::span<const Tensor> first, std::span<const Tensor> second,
                         std::span<const OutputTolerance> tolerances,
                         std::span<const std::string> names);

// The batch axis of each output; none: the output does not follow the batch.
using BatchAxes = std::vector<std::optional<size_t>>;

// A batch that was cut into `parts`, each called alone, against the whole. Outputs
// without a batch axis are not compared. Rule "split".
CheckRecord check_split(std::span<const Tensor> whole, std::span<const std::vector<Tensor>> parts,
                        const BatchAxes& axes, std::span<const OutputTolerance> tolerances,
                        std::span<const std::string> names);

// Outputs of a batch whose rows were all the same. Rule "equal rows".
CheckRecord check_equal_rows(std::span<const Tensor> outputs, const BatchAxes& axes,
                             std::span<const OutputTolerance> tolerances,
                             std::span<const std::string> names);

// What calls do besides answering.
struct SideEffects {
  std::vector<size_t> written_inputs;              // Inputs whose bytes changed during the call.
  std::vector<std::pair<size_t, size_t>> aliases;  // Output i shares memory with input j.
  bool first_result_changed = false;               // Outputs of call 1 changed during call 2.
};

// A candidate may do what the original does, and must write the inputs that it writes.
// Rules "results stay", "no alias", "inputs stay".
CheckRecord check_side_effects(const SideEffects& own, const SideEffects& original,
                               std::span<const std::string> input_names,
                               std::span<const std::string> output_names);

}  // namespace hasten
