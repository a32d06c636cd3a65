// SPDX-License-Identifier: Apache-2.0
// One input structure of a model, with what is known about every axis.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"
#include "model/signature.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hasten {

enum class AxisKind { kStatic, kBatch, kDynamic };

// A batch size times this is still a size.
constexpr int64_t kMaxMultiplier = 1 << 20;

struct Axis {
  AxisKind kind = AxisKind::kStatic;
  int64_t min = 0, max = 0;  // Seen sizes (or declared ones); equal when static. A symbol
                             // that was declared without a range has 0 and 0.
  int64_t multiplier = 1;    // Batch axes: size = multiplier * batch size.
  std::string symbol;  // Batch and dynamic axes: "B", "T", "dim1". Equal symbols, equal sizes.
  friend bool operator==(const Axis&, const Axis&) = default;
};
// "3", "B=1..2", "2*B=1..4" (the range is the symbol's), "T" when no size is known.
std::string describe(const Axis& axis);
std::string symbol_text(const Axis& axis);  // The same without the range: "3", "B", "2*B".

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Axis> axes;
  std::string describe() const;  // "image float32[B=1..2,3,224,224]"
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct GraphSpec {
  std::string name = "0";  // In the order of appearance.
  std::vector<TensorSpec> inputs, outputs;

  bool has_batch_axis() const;  // Some input has one.
  int64_t min_batch() const;  // Over the batch axes, divided by the multiplier; 1 without.
  int64_t max_batch() const;
  // The batch size of these inputs; none when the axes disagree or there is none.
  std::optional<int64_t> batch_of(std::span<const Tensor> inputs) const;
  // Same arity, ranks, dtypes and static sizes? The error names the input.
  Status accepts(std::span<const DLTensor> inputs) const;
  bool same_structure(std::span<const Tensor> inputs) const;  // Arity, ranks and dtypes.

  Json to_json() const;
  static Result<GraphSpec> from_json(const Json& json);
};

// One recorded call.
struct Sample {
  std::vector<Tensor> inputs;  // In the order of the graph's inputs.
  std::string origin;          // "x.npz", "SPEC at B=2": for messages.
};

// The inputs at another batch size: rows are cycled along every batch axis,
// axes without one are kept. Other axes as they are.
std::vector<Tensor> make_batch(const GraphSpec& graph, std::span<const Tensor> inputs,
                               int64_t batch_size);
// The inputs with a dynamic axis (every axis of that symbol) at another size.
std::vector<Tensor> resize_symbol(const GraphSpec& graph, std::span<const Tensor> inputs,
                                  const std::string& symbol, int64_t size);
// What these two would return takes, all inputs together.
double bytes_of_batch(const GraphSpec& graph, std::span<const Tensor> inputs, int64_t batch_size);
double bytes_of_symbol(const GraphSpec& graph, std::span<const Tensor> inputs,
                       const std::string& symbol, int64_t size);

}  // namespace hasten
