// SPDX-License-Identifier: Apache-2.0
// What a built candidate is saved as: the user's file and the options. It is frozen again at
// each load, so that nothing depends on the machine that built it.
#pragma once

#include <hasten/plugin.hpp>

#include <span>
#include <string>
#include <vector>

#include "graph_inputs.h"

namespace hasten {

struct Payload {
  std::string model;
  Options options;
  std::vector<GraphInput> graph;
};

void save_payload(const std::string& dir, const std::string& model, const Options& options,
                  const std::vector<GraphInput>& graph);
// Throws HASTEN_INVALID_ARGUMENT with the name of the file that is wrong.
Payload read_payload(const std::string& dir, std::span<const OptionSpec> known);

}  // namespace hasten
