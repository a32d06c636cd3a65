// SPDX-License-Identifier: Apache-2.0
// What the host knows about the inputs of a model: the GraphSpec that build() is given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

struct GraphInput {
  std::string name, dtype;
  std::vector<int64_t> smallest;  // Per axis: the smallest size that was seen.
};

// Empty for "{}" and for any graph without inputs. Throws HASTEN_INVALID_ARGUMENT on text
// that is no JSON.
std::vector<GraphInput> graph_inputs(std::string_view graph_json);

}  // namespace hasten
