// SPDX-License-Identifier: Apache-2.0
// SPECs: what they say together, whether the model allows it, and calls with random values
// that are made of them.
#pragma once

#include <hasten/result.h>

#include "model/recording.h"
#include "model/signature.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

struct SizeRange {
  int64_t low = 0, high = 0;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

// A symbol of the model's own that stands for the batch: the one at axis 0 of the first input
// that has one there.
std::string batch_symbol(const Signature& signature);

// SPECs that say what the model file says, for a user who gave no input at all.
Result<std::vector<InputSpec>> specs_of(const Signature& signature);

// A range that is given once counts wherever its symbol stands. Fails for two ranges of one
// symbol.
Status share_ranges(std::vector<InputSpec>& specs);
// Of the batch; none: nobody gave one.
std::optional<SizeRange> batch_range(const std::vector<InputSpec>& specs);

// That what a SPEC says is possible in the model.
Status check_spec(const InputSpec& spec, const Signature& signature);
// The SPECs in the model's order, one for each input. Optional ones at the end may lack.
Result<std::vector<InputSpec>> in_model_order(const std::vector<InputSpec>& specs,
                                              const Signature& signature);

// One call for each batch size; a symbol has one size in a call, wherever it stands.
Result<std::vector<RecordedCall>> random_calls(const std::vector<InputSpec>& specs,
                                               const std::vector<int64_t>& batch_sizes,
                                               uint64_t seed, uint64_t limit_bytes);

// Sizes are a user's to choose, memory is not: told before anything is allocated. `at` is
// "B = 64"; the bytes are a double, which no product of sizes overflows.
Status check_room(std::string_view at, double bytes, uint64_t limit_bytes);

}  // namespace hasten
