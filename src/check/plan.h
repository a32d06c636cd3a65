// SPDX-License-Identifier: Apache-2.0
// At which sizes a candidate is checked beyond the recorded samples: the smallest,
// the largest, an odd and an unrecorded size of the batch and of every other
// dynamic symbol. Exporters bake sizes in without a word and answer wrongly at another.
#pragma once

#include <hasten/tensor.h>

#include "base/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hasten {

// A symbol of the model and the sizes that are known of it.
struct SymbolRange {
  std::string symbol;         // "B", "T", ...
  int64_t min = 1, max = 1;   // Seen or declared.
  std::vector<int64_t> seen;  // Sizes of the recorded samples, any order.
};

struct PlannedSize {
  std::string symbol;
  int64_t size = 1;
  std::string why;  // "smallest", "largest", "odd", "not recorded"
};

// For the batch symbol and dynamic ones alike; one planned size differs from the recorded
// samples in one symbol. No duplicates, none of `seen` unless it is an end of the
// range; empty for a range without any symbol. Where the ends are only what was recorded
// and no size is free between them, larger ones are planned: whoever runs them leaves out
// a size that the original itself refuses.
std::vector<PlannedSize> plan_sizes(const std::vector<SymbolRange>& symbols);

// Inputs of the same shapes that a model takes where it takes these, with other values: each
// tensor's own elements moved by one place, so that an index stays an index and a length a
// length, and floating-point ones halved, for what does not depend on the order.
std::vector<Tensor> other_values(std::span<const Tensor> inputs);

// Does a model with these inputs and outputs compute with 64-bit integers and nothing else?
// Some engines do that in 32 bits and say nothing. Integers that end in floating-point
// outputs are indices and masks, where such values would mean nothing.
bool computes_wide_integers(std::span<const Tensor> inputs, std::span<const Tensor> outputs);
// The inputs, with every 64-bit integer moved away from zero beyond what 32 bits hold.
std::vector<Tensor> beyond_32_bits(std::span<const Tensor> inputs);

}  // namespace hasten
