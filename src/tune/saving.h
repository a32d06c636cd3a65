// SPDX-License-Identifier: Apache-2.0
// From a finished tune to an artifact: which payloads go in, in which order they
// answer, and the calls that prove them.
#pragma once

#include <hasten/result.h>

#include "record/environment.h"
#include "strategy/strategy.h"
#include "tune/contestant.h"
#include "tune/original.h"
#include "tune/workshop.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hasten {

struct GraphOutcome {
  Original original;
  std::vector<Contestant> contestants;
  size_t tried = 0;  // The first so many of them had their turn.
  Choice choice;
};

// The winner first; behind it, for shapes and machines that it does not suit, the
// original, or where that needs Python the best candidate that does not. kUnsupported when
// nothing that was proved can be saved. Warnings for what a user should know are added.
Status save_artifact(Workshop& shop, const std::filesystem::path& path,
                     std::span<GraphOutcome> graphs, const Environment& environment,
                     const Json& report, std::vector<std::string>& warnings);

}  // namespace hasten
