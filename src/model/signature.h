// SPDX-License-Identifier: Apache-2.0
// What a model file says about its own inputs and outputs.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hasten {

using Dimension = std::variant<int64_t, std::string>;  // A size, or a symbol ("" : unknown).

struct ValueInfo {
  std::string name;
  std::optional<DType> dtype;                   // None: the format does not say.
  std::string foreign_dtype;                    // A dtype that hasten has no name for ("string").
  std::optional<std::vector<Dimension>> shape;  // None: not even the rank is known.
  bool optional = false;
};

struct Signature {
  std::vector<ValueInfo> inputs, outputs;
  Json to_json() const;
  static Result<Signature> from_json(const Json& json);
};

}  // namespace hasten
