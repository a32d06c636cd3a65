// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hasten {

// A size from /proc/self/status: "VmHWM" (peak resident), "VmRSS" (resident).
std::optional<uint64_t> own_memory_bytes(std::string_view field);

}  // namespace hasten
