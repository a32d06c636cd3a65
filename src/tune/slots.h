// SPDX-License-Identifier: Apache-2.0
// Where a worker holds the inputs of its calls.
#pragma once

#include <cstddef>

namespace hasten {

constexpr size_t kCheckSlot = 0;
constexpr size_t kOtherSlot = 1;     // Of a second call, while the results of the first are alive.
constexpr size_t kMeasuredSlot = 2;  // Apart from those of the check.

}  // namespace hasten
