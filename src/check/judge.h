// SPDX-License-Identifier: Apache-2.0
// What the checks of this folder share: names, and one output against another.
#pragma once

#include "check/check.h"
#include "record/trial.h"
#include "tensor/difference.h"

#include <optional>
#include <span>
#include <string>

namespace hasten {

// The name of output i; "output 2" without one.
std::string output_name(std::span<const std::string> names, size_t i);
std::string value_text(double value);  // "0.25", "nan", "-inf"

// Remembers the deviation that is the worst compared with its limit.
void keep_worst(std::optional<WorstDeviation>& worst, const WorstDeviation& other);
// None for tensors without elements.
std::optional<WorstDeviation> deviation_of(const Difference& difference, const std::string& name);
// "output 'logits' is off by 0.031 at [0,17] (limit 0.001): 0.52, not 0.489; 3 of 1000 ..."
std::string deviation_text(const Difference& difference, const std::string& name, size_t size);

// Number of outputs, dtypes, shapes, then values; the first that is wrong is the rule.
CheckRecord compare_outputs(std::span<const Tensor> actual, std::span<const Tensor> expected,
                            std::span<const OutputTolerance> tolerances,
                            std::span<const std::string> names, const std::string& what);

}  // namespace hasten
