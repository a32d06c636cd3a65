// SPDX-License-Identifier: Apache-2.0
#include "model/samples.h"

#include "base/text.h"
#include "tensor/ops.h"

#include <algorithm>

namespace hasten {
namespace {

std::vector<std::string> names_of(const std::vector<ValueInfo>& values) {
  std::vector<std::string> names;
  for (const ValueInfo& value : values) names.push_back(value.name);
  return names;
}

std::string wanted_text(const std::vector<Dimension>& shape) {
  std::vector<std::string> parts;
  for (const Dimension& dimension : shape) {
    if (const auto* size = std::get_if<int64_t>(&dimension)) {
      parts.push_back(std::to_string(*size));
    } else {
      const std::string& symbol = std::get<std::string>(dimension);
      parts.push_back(symbol.empty() ? "?" : symbol);
    }
  }
  return "[" + join(parts, ",") + "]";
}

// One tensor per input, borrowed; NULL where none was given.
using Slots = std::vector<const Tensor*>;

bool are_positional(const NamedTensors& arrays) {
  return std::ranges::all_of(arrays, [&](const auto& entry) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (entry.first == format("arr_{}", i)) return true;
    }
    return false;
  });
}

Result<Slots> by_position(const NamedTensors& arrays, const Signature& signature,
                          const std::string& origin) {
  Slots slots(signature.inputs.size());
  if (arrays.size() > slots.size()) {
    return Error{Code::kInvalidArgument,
                 format("{} has {} arrays, but the model has {} inputs ({})", origin, arrays.size(),
                        slots.size(), join(names_of(signature.inputs), ", "))};
  }
  for (const auto& [name, tensor] : arrays) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (name == format("arr_{}", i)) slots[i] = &tensor;
    }
  }
  return slots;
}

Result<Slots> by_name(const NamedTensors& arrays, const Signature& signature,
                      const std::string& origin) {
  const std::vector<std::string> names = names_of(signature.inputs);
  Slots slots(names.size());
  for (const auto& [name, tensor] : arrays) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      const auto near = closest(name, names);
      return Error{Code::kInvalidArgument,
                   format("'{}' in {} is no input of the model{}", name, origin,
                          near ? format("; did you mean '{}'?", *near) : std::string()),
                   names.empty() ? "the model has no inputs"
                                 : format("the model's inputs are: {}; np.savez(\"{}\", first, second) "
                                          "gives them by order",
                                          join(names, ", "), origin)};
    }
    slots[static_cast<size_t>(found - names.begin())] = &tensor;
  }
  return slots;
}

Status check_dtype(const ValueInfo& input, const Tensor& tensor, const std::string& origin) {
  if (!input.foreign_dtype.empty()) {
    return Error{Code::kUnsupported, format("the model takes '{}' as {}, a dtype that hasten has "
                                            "no name for",
                                            input.name, input.foreign_dtype)};
  }
  if (!input.dtype || *input.dtype == tensor.dtype()) return {};
  return Error{
      Code::kInvalidArgument,
      format("'{}' is {} in {} but the model takes {}", input.name, to_string(tensor.dtype()),
             origin, to_string(*input.dtype)),
      format("convert it before it is saved: array.astype(\"{}\")", to_string(*input.dtype))};
}

Status check_shape(const ValueInfo& input, const Tensor& tensor, const std::string& origin) {
  if (!input.shape) return {};
  bool fits = input.shape->size() == tensor.shape().size();
  for (size_t a = 0; fits && a < input.shape->size(); ++a) {
    const auto* size = std::get_if<int64_t>(&(*input.shape)[a]);
    fits = !size || *size == tensor.shape()[a];
  }
  if (fits) return {};
  return Error{Code::kInvalidArgument,
               format("'{}' has the shape {} in {}, which is outside the model's {}", input.name,
                      shape_text(tensor.shape()), origin, wanted_text(*input.shape))};
}

}  // namespace

Result<std::vector<Tensor>> match_inputs(const NamedTensors& arrays, const Signature& signature,
                                         const std::string& origin) {
  const std::vector<std::string> names = names_of(signature.inputs);
  const bool any_known = std::ranges::any_of(arrays, [&](const auto& entry) {
    return std::ranges::find(names, entry.first) != names.end();
  });
  const bool positional = !any_known && !arrays.empty() && are_positional(arrays);
  HASTEN_TRY(const Slots slots, positional ? by_position(arrays, signature, origin)
                                           : by_name(arrays, signature, origin));
  // Engines take inputs in order: only the end can be left out.
  size_t given = slots.size();
  while (given > 0 && !slots[given - 1] && signature.inputs[given - 1].optional) --given;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < given; ++i) {
    const ValueInfo& input = signature.inputs[i];
    if (!slots[i]) {
      return Error{Code::kInvalidArgument, format("{} lacks the input '{}'", origin, input.name),
                   input.optional ? "an optional input can only be left out with all behind it"
                                  : format("the model's inputs are: {}", join(names, ", "))};
    }
    HASTEN_TRY_STATUS(check_dtype(input, *slots[i], origin));
    HASTEN_TRY_STATUS(check_shape(input, *slots[i], origin));
    inputs.push_back(slots[i]->clone());
  }
  return inputs;
}

}  // namespace hasten
