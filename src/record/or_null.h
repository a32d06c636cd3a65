// SPDX-License-Identifier: Apache-2.0
// Values of records that may have nothing to say, which is null in JSON.
#pragma once

#include "base/json.h"

#include <cmath>
#include <string>

namespace hasten {

inline Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace hasten
