// SPDX-License-Identifier: Apache-2.0
// Values, not only shapes: is a candidate the same function as the original?
// Judges outputs that others computed; runs nothing, times nothing.
#pragma once

#include <hasten/tensor.h>

#include "record/trial.h"
#include "tensor/difference.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

// What the original answered for one set of inputs.
struct Reference {
  std::string what;                    // "sample 0 (x.npz)", "sample 0 at batch 7 (not recorded)"
  std::vector<Tensor> outputs;         // Of eager.
  std::vector<Tensor> exact;           // Of the oracle (float64); empty: not asked.
};

struct TolerancePolicy {
  std::optional<double> absolute, relative;  // The user's; each replaces the derived one.
  double error_factor = 16;            // k: times eager's own error against the oracle.
  // The relative error that the user allows for lower precision. Its absolute part is this
  // times the root mean square of the output, so that elements near zero do not decide.
  std::optional<double> lossy;
};

// One tolerance per output. With an oracle: error_factor times the largest error of eager
// there, never under the floor of the dtype, never over its ceiling; without: the dtype's default.
struct OutputTolerance {
  Tolerance tolerance;
  std::string source;                  // "16 x eager's error against float64", "default for float32", "given"
};
std::vector<OutputTolerance> derive_tolerances(std::span<const Reference> references,
                                               const TolerancePolicy& policy);

// Candidate outputs against one reference. `names` for the report.
CheckRecord check_outputs(std::span<const Tensor> actual, const Reference& reference,
                          std::span<const OutputTolerance> tolerances,
                          std::span<const std::string> names);
// Joins the verdicts: passed only if all did; the worst deviation of all.
CheckRecord merge(std::span<const CheckRecord> records);

}  // namespace hasten
