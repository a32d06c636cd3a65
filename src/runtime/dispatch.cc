// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch.h"

#include <algorithm>

#include "base/text.h"

namespace hasten {

Result<GraphTable> GraphTable::of(const ArtifactGraph& graph) {
  GraphTable table;
  for (const TensorSpec& spec : graph.spec.inputs) {
    table.inputs_.push_back({to_dlpack(spec.dtype), static_cast<int32_t>(spec.axes.size()),
                             static_cast<uint32_t>(table.axes_.size())});
    for (const Axis& axis : spec.axes) {
      if (axis.kind == AxisKind::kStatic) {
        table.axes_.push_back({axis.min, -1});
        continue;
      }
      auto found = std::ranges::find(table.symbols_, axis.symbol);
      if (found == table.symbols_.end()) {
        if (table.symbols_.size() == kMaxSymbols) {
          return Error{Code::kUnsupported, format("graph {} has more than {} sizes that vary",
                                                  graph.spec.name, kMaxSymbols)};
        }
        found = table.symbols_.insert(found, axis.symbol);
      }
      table.axes_.push_back(
          {axis.multiplier, static_cast<int32_t>(found - table.symbols_.begin())});
    }
  }
  for (const Route& route : graph.routes) HASTEN_TRY_STATUS(table.add_route(graph, route));
  return table;
}

Status GraphTable::add_route(const ArtifactGraph& graph, const Route& route) {
  std::vector<RangeCheck>& checks = routes_.emplace_back();
  for (const auto& [symbol, range] : route.ranges) {
    const auto found = std::ranges::find(symbols_, symbol);
    if (found == symbols_.end()) {
      return Error{Code::kInvalidArgument,
                   format("the manifest has a range for '{}', but no input of graph {} has it",
                          symbol, graph.spec.name)};
    }
    checks.push_back({static_cast<uint32_t>(found - symbols_.begin()), range.first, range.second});
  }
  return {};
}

bool GraphTable::matches(std::span<const DLTensor> inputs, SymbolSizes& sizes) const noexcept {
  if (inputs.size() != inputs_.size()) return false;
  std::fill_n(sizes.begin(), symbols_.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DLTensor& input = inputs[i];
    const InputCheck& check = inputs_[i];
    if (input.ndim != check.rank || input.dtype.code != check.dtype.code ||
        input.dtype.bits != check.dtype.bits || input.dtype.lanes != check.dtype.lanes ||
        input.device.device_type != kDLCPU) {
      return false;
    }
    for (int32_t a = 0; a < check.rank; ++a) {
      const AxisCheck& axis = axes_[check.first_axis + static_cast<uint32_t>(a)];
      const int64_t size = input.shape[a];
      if (axis.symbol < 0) {
        if (size != axis.size) return false;
        continue;
      }
      if (size < 0) return false;
      // Nearly every multiplier is 1, and a division costs more than all else here.
      int64_t value = size;
      if (axis.size != 1) {
        value = size / axis.size;
        if (value * axis.size != size) return false;
      }
      int64_t& known = sizes[static_cast<size_t>(axis.symbol)];
      if (known < 0) known = value;
      if (known != value) return false;
    }
  }
  return true;
}

bool GraphTable::route_fits(size_t route, const SymbolSizes& sizes) const noexcept {
  return std::ranges::all_of(routes_[route], [&](const RangeCheck& range) {
    return sizes[range.symbol] >= range.low && sizes[range.symbol] <= range.high;
  });
}

std::string GraphTable::describe(const SymbolSizes& sizes) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    parts.push_back(format("{}={}", symbols_[i], sizes[i]));
  }
  return join(parts, ", ");
}

}  // namespace hasten
