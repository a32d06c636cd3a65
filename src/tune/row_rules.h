// SPDX-License-Identifier: Apache-2.0
// Rules between the rows of a batch, at a size that nobody recorded and that may never be
// measured: equal rows give equal rows, and a batch in parts gives what the whole gives.
#pragma once

#include <hasten/result.h>

#include "backend/worker.h"
#include "record/trial.h"
#include "tune/contestant.h"
#include "tune/original.h"
#include "tune/workshop.h"

#include <chrono>

namespace hasten {

// Finds out which of them the original keeps. `call`: how long its first case takes; rows
// beyond what is soon done are not asked for.
void study_row_rules(Workshop& shop, Original& original, std::chrono::nanoseconds call);

// Those that the original keeps, asked of a candidate that is at hand.
Result<CheckRecord> check_row_rules(const Workshop& shop, const Original& original,
                                    Contestant& contestant);

}  // namespace hasten
