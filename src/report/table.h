// SPDX-License-Identifier: Apache-2.0
// A tune as text for a terminal: what was tried, what came of it, what was chosen.
#pragma once

#include "record/tune_record.h"

#include <string>

namespace hasten {

// UTF-8, without colour; every line ends with a line feed.
std::string table(const TuneRecord& record);

}  // namespace hasten
