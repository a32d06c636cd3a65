// SPDX-License-Identifier: Apache-2.0
#include "model/signature.h"

#include "base/text.h"

namespace hasten {
namespace {

Json to_json(const ValueInfo& value) {
  Json json = Json::object({{"name", value.name}});
  if (value.dtype) {
    json.set("dtype", to_string(*value.dtype));
  } else if (!value.foreign_dtype.empty()) {
    json.set("dtype", value.foreign_dtype);
  }
  if (value.shape) {
    Json shape = Json::array();
    for (const Dimension& dimension : *value.shape) {
      if (const auto* size = std::get_if<int64_t>(&dimension)) {
        shape.push(*size);
      } else {
        shape.push(std::get<std::string>(dimension));
      }
    }
    json.set("shape", std::move(shape));
  }
  if (value.optional) json.set("optional", true);
  return json;
}

Result<ValueInfo> value_from_json(const Json& json) {
  ValueInfo value;
  value.name = json["name"].as_string();
  if (value.name.empty()) {
    return Error{Code::kInvalidArgument, "a signature has an input or output without a name"};
  }
  if (const std::string& dtype = json["dtype"].as_string(); !dtype.empty()) {
    value.dtype = dtype_from_string(dtype);
    if (!value.dtype) value.foreign_dtype = dtype;
  } else {
    value.foreign_dtype = json["foreign_dtype"].as_string();  // As plugins write it.
  }
  value.optional = json["optional"].as_bool();
  if (!json["shape"].is_array()) return value;
  std::vector<Dimension> shape;
  for (const Json& item : json["shape"].items()) {
    // Formats write an unknown size as null, as "" or as a negative number.
    if (item.is_int() && item.as_int() >= 0) {
      shape.emplace_back(item.as_int());
    } else if (item.is_string() || item.is_null() || item.is_int()) {
      shape.emplace_back(item.as_string());
    } else {
      return Error{Code::kInvalidArgument,
                   format("the shape of '{}' in a signature holds {}", value.name, item.dump())};
    }
  }
  value.shape = std::move(shape);
  return value;
}

Result<std::vector<ValueInfo>> values_from_json(const Json& json, std::string_view what) {
  std::vector<ValueInfo> values;
  if (!json.is_array()) {
    return Error{Code::kInvalidArgument, format("a signature has no list of {}", what)};
  }
  for (const Json& item : json.items()) {
    HASTEN_TRY(ValueInfo value, value_from_json(item));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

Json Signature::to_json() const {
  Json in = Json::array(), out = Json::array();
  for (const ValueInfo& value : inputs) in.push(hasten::to_json(value));
  for (const ValueInfo& value : outputs) out.push(hasten::to_json(value));
  return Json::object({{"inputs", std::move(in)}, {"outputs", std::move(out)}});
}

Result<Signature> Signature::from_json(const Json& json) {
  Signature signature;
  HASTEN_TRY(signature.inputs, values_from_json(json["inputs"], "inputs"));
  HASTEN_TRY(signature.outputs, values_from_json(json["outputs"], "outputs"));
  return signature;
}

}  // namespace hasten
