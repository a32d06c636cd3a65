// SPDX-License-Identifier: Apache-2.0
// Walking over strided memory. Private to this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hasten {

// Calls `visit(offsets, count, steps)` for runs of elements in row-major order: `count`
// elements of tensor t stand at offsets[t] + i * steps[t], in elements. Axes that are
// adjacent in all N tensors are joined, so that compact tensors are one single run.
template <size_t N, class F>
void for_each_run(std::span<const int64_t> shape,
                  const std::array<std::span<const int64_t>, N>& strides, F&& visit) {
  struct Axis {
    int64_t size;
    std::array<int64_t, N> steps;
  };
  for (const int64_t n : shape) {
    if (n == 0) return;
  }
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    Axis axis{shape[d], {}};
    bool joins = !axes.empty();
    for (size_t t = 0; t < N; ++t) {
      axis.steps[t] = strides[t][d];
      joins = joins && axes.back().steps[t] == axis.steps[t] * axis.size;
    }
    if (joins)
      axis.size *= axes.back().size, axes.back() = axis;
    else
      axes.push_back(axis);
  }
  Axis inner{1, {}};
  if (!axes.empty()) {
    inner = axes.back();
    axes.pop_back();
  }
  std::vector<int64_t> position(axes.size(), 0);
  std::array<int64_t, N> offsets{};
  while (true) {
    visit(offsets, inner.size, inner.steps);
    size_t d = axes.size();
    while (d > 0) {
      --d;
      for (size_t t = 0; t < N; ++t) offsets[t] += axes[d].steps[t];
      if (++position[d] < axes[d].size) break;
      for (size_t t = 0; t < N; ++t) offsets[t] -= axes[d].steps[t] * axes[d].size;
      position[d] = 0;
      if (d == 0) return;
    }
    if (axes.empty()) return;
  }
}

}  // namespace hasten
