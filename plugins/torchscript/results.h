// SPDX-License-Identifier: Apache-2.0
// What a model returns, flat: tuples and lists by position, dictionaries as they were filled.
// Tensors and numbers count, None and text do not.
#pragma once

#include <hasten/plugin.hpp>

#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>
#include <vector>

namespace hasten {

class Flattener {
 public:
  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isInt() || value.isBool() || value.isDouble()) {
      const at::ScalarType type = value.isInt()    ? at::kLong
                                  : value.isBool() ? at::kBool
                                                   : at::kDouble;
      tensors.push_back(at::scalar_tensor(value.toScalar(), type));
    } else if (value.isTuple()) {
      for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) add(item);
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) {
        keys += entry.key().isString() ? entry.key().toStringRef() + "\n" : "\n";
        add(entry.value());
      }
    } else if (!value.isNone() && !value.isString()) {
      throw PluginError(HASTEN_UNSUPPORTED, "an output is a " + value.tagKind());
    }
  }

  std::vector<at::Tensor> tensors;
  std::string keys;  // Of all dictionaries: another order would swap outputs.
};

// "0", or the field's name in a named tuple.
inline std::string part_name(const c10::TupleType& tuple, size_t i) {
  return tuple.schema() ? tuple.schema()->arguments()[i].name() : std::to_string(i);
}

inline bool add_names(const c10::TypePtr& type, const std::string& prefix,
                      std::vector<std::string>& names) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
      names.push_back(prefix);
      return true;
    case c10::TypeKind::NoneType:
    case c10::TypeKind::StringType:
      return true;
    case c10::TypeKind::TupleType: {
      const auto tuple = type->expect<c10::TupleType>();
      for (size_t i = 0; i < tuple->elements().size(); ++i) {
        const std::string name = prefix + "_" + part_name(*tuple, i);
        if (!add_names(tuple->elements()[i], name, names)) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

// Names and number of the outputs that a type promises; none when only a call can tell.
inline std::optional<std::vector<std::string>> names_of(const c10::TypePtr& type) {
  std::vector<std::string> names;
  return add_names(type, "output", names) ? std::optional(std::move(names)) : std::nullopt;
}

inline void add_names(const c10::IValue& value, const std::string& prefix,
                      std::vector<std::string>& names) {
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    const auto type = value.toTuple()->type();
    for (size_t i = 0; i < elements.size(); ++i) {
      add_names(elements[i], prefix + "_" + part_name(*type, i), names);
    }
  } else if (value.isList()) {
    size_t i = 0;
    for (const c10::IValue& item : value.toListRef()) {
      add_names(item, prefix + "_" + std::to_string(i++), names);
    }
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      const std::string key = entry.key().isString() ? entry.key().toStringRef()
                              : entry.key().isInt()  ? std::to_string(entry.key().toInt())
                                                     : std::to_string(names.size());
      add_names(entry.value(), prefix + "_" + key, names);
    }
  } else if (!value.isNone() && !value.isString()) {
    names.push_back(prefix);
  }
}

// The names of what Flattener makes out of this value, in the same order.
inline std::vector<std::string> names_in(const c10::IValue& value) {
  std::vector<std::string> names;
  add_names(value, "output", names);
  return names;
}

}  // namespace hasten
