// SPDX-License-Identifier: Apache-2.0
// The measured part: who is how fast at which batch size, in turns, one child at a
// time. Every size is checked before it is measured, so that a fast wrong answer at
// a size nobody recorded cannot win.
#pragma once

#include <hasten/result.h>

#include "strategy/strategy.h"
#include "tune/contestant.h"
#include "tune/original.h"
#include "tune/workshop.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace hasten {

struct ContestOptions {
  std::vector<int64_t> batch_sizes;  // In order.
  bool stop_when_flat = false;       // SweepIsFlat, over the best of all.
  bool original_takes_part = true;   // Else it sends nobody off for being far behind it.
  size_t min_rounds = 8, max_rounds = 30;
};

// Fills in the points of the trials. Whoever fails or answers wrongly is out; whom a limit
// ends at a size keeps what it did at the smaller ones, and so does the original.
void measure(Workshop& shop, Original& original, std::span<Contestant> contestants,
             const ContestOptions& options);

// One against the original at one size, both loaded anew from what was saved. The
// point of the contestant, or why it does not stand. `folder` is scratch.
Result<Point> confirm(Workshop& shop, Original& original, const Contestant& contestant,
                      int64_t batch_size, const std::filesystem::path& folder);

}  // namespace hasten
