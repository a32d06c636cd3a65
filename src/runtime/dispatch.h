// SPDX-License-Identifier: Apache-2.0
// Which graph and which routes a call may take, as flat tables: no text, no allocation.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/artifact.h"

namespace hasten {

constexpr size_t kMaxSymbols = 64;
// What each symbol of a graph stands for in one call.
using SymbolSizes = std::array<int64_t, kMaxSymbols>;

class GraphTable {
 public:
  // kUnsupported for more than kMaxSymbols symbols; kInvalidArgument for a route whose range
  // is of a symbol that no input has.
  static Result<GraphTable> of(const ArtifactGraph& graph);

  // Arity, dtypes, ranks, static sizes, and one size per symbol; `sizes` is filled.
  bool matches(std::span<const DLTensor> inputs, SymbolSizes& sizes) const noexcept;
  bool route_fits(size_t route, const SymbolSizes& sizes) const noexcept;
  // "B=3, T=17"
  std::string describe(const SymbolSizes& sizes) const;

 private:
  struct AxisCheck {
    int64_t size = 0;  // Static axes: what it must be. Others: the multiplier.
    int32_t symbol = -1;
  };
  struct InputCheck {
    DLDataType dtype{};
    int32_t rank = 0;
    uint32_t first_axis = 0;
  };
  struct RangeCheck {
    uint32_t symbol = 0;
    int64_t low = 0, high = 0;
  };

  Status add_route(const ArtifactGraph& graph, const Route& route);

  std::vector<InputCheck> inputs_;
  std::vector<AxisCheck> axes_;
  std::vector<std::vector<RangeCheck>> routes_;
  std::vector<std::string> symbols_;
};

}  // namespace hasten
