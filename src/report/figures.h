// SPDX-License-Identifier: Apache-2.0
// Numbers as a person reads them.
#pragma once

#include "record/interval.h"

#include <string>

namespace hasten {

// About three digits, written out: "0.012", "3.41", "12.3", "12345". What is not
// finite is "?".
std::string figure(double value);

// "1.32 (1.29 … 1.35)": as many places as the estimate deserves. "1.5 (too few rounds)"
// where the interval has no upper end.
std::string ratio_text(const Interval& ratio);

}  // namespace hasten
