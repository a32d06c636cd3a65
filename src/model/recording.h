// SPDX-License-Identifier: Apache-2.0
// From recorded calls to graphs: which axis follows the batch, which varies otherwise.
//
// An axis is a batch axis when, over all samples with at least two batch sizes,
// its size is one whole multiple of the batch size, and dynamic when its size
// varies otherwise. All samples are judged together, so their order is of no
// matter; dtype is part of a graph's identity.
#pragma once

#include <hasten/result.h>

#include "model/graph_spec.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {

struct RecordedCall {
  Sample sample;
  std::optional<int64_t> batch_size;  // None: unknown; such calls never make a batch axis.
};

struct RecordedGraph {
  GraphSpec spec;  // Inputs only.
  std::vector<Sample> samples;
  std::vector<std::optional<int64_t>> batch_sizes;  // Of the samples.
};

std::vector<RecordedGraph> group_into_graphs(std::vector<RecordedCall> calls,
                                             const std::vector<std::string>& input_names);
// The output side, from the outputs of the baseline for calls of known input axes.
std::vector<TensorSpec> output_specs(const GraphSpec& graph,
                                     std::span<const std::vector<Tensor>> outputs,
                                     std::span<const std::optional<int64_t>> batch_sizes,
                                     const std::vector<std::string>& names);

// No engine takes an axis or a batch near this; products with a multiplier stay in range.
constexpr int64_t kMaxSize = int64_t{1} << 40;

// An input SPEC: "name=float32[B,3,T=8..128]" with an optional value range
// "@0..30521" behind it. Symbols are dynamic; `B` (or the one given) is the batch.
struct InputSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Axis> axes;
  std::optional<std::pair<double, double>> values;
};
// The text of an --input that is no file: has '=' and '['.
bool looks_like_spec(std::string_view text);
// Errors name the position of the mistake and carry the form as their hint.
Result<InputSpec> parse_input_spec(std::string_view text, std::string_view batch_symbol = "B");

// What the user declared replaces what was inferred: kinds and symbols, and ranges where
// a range was given (they are widened by what was seen). Inputs without a spec keep theirs.
// Fails when a spec names an unknown input, or contradicts the rank, the dtype or a seen size.
Status declare(GraphSpec& graph, std::span<const InputSpec> specs);

}  // namespace hasten
