// SPDX-License-Identifier: Apache-2.0
// What can be set, and what is worth trying.
#pragma once

#include <hasten/plugin.hpp>

#include <string_view>
#include <vector>

namespace hasten {

inline constexpr char kTorchScript[] = "torchscript";

const Description& torchscript_description();
std::vector<ConfigProposal> torchscript_candidates(std::string_view format);

}  // namespace hasten
