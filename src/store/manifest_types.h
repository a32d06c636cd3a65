// SPDX-License-Identifier: Apache-2.0
// What JSON type every field of a manifest has. The report in it is free but for what is read.
#pragma once

#include <hasten/result.h>

#include "base/json.h"

namespace hasten {

// kInvalidArgument where one is missing or of another type: "graphs[0].routes[1].ranges is a
// number, not an object".
Status check_manifest_types(const Json& manifest);

}  // namespace hasten
