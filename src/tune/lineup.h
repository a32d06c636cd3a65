// SPDX-License-Identifier: Apache-2.0
// Who takes part: from what the user named and what the backends propose to a list
// of contestants, in the order that ties are broken by.
#pragma once

#include <hasten/result.h>
#include <hasten/tune.h>

#include "tune/contestant.h"
#include "tune/conversions.h"
#include "tune/original.h"
#include "tune/scouting.h"

#include <span>
#include <string>
#include <vector>

namespace hasten {

// Unknown and unavailable names, unknown keys and impossible values: told before any work. So is
// that none of those named takes the model; where only some do not, each is a trial that failed.
Status check_named(const TuneOptions& options, std::span<const Scouted> scouted,
                   const Compilers& compilers, const Model& model);

std::vector<Contestant> line_up(const TuneOptions& options, std::span<const Scouted> scouted,
                                const Conversions& conversions, const Original& original);

// The shell command that repeats one candidate alone, from whatever folder.
std::string repeat_command(const TuneOptions& options, const Candidate& candidate);

}  // namespace hasten
