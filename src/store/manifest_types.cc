// SPDX-License-Identifier: Apache-2.0
#include "store/manifest_types.h"

#include <string>
#include <string_view>

#include "base/text.h"

namespace hasten {
namespace {

enum class Type { kInteger, kNumber, kText, kSetting, kList, kObject };

std::string_view name_of(Type type) {
  switch (type) {
    case Type::kInteger:
      return "a whole number";
    case Type::kNumber:
      return "a number";
    case Type::kText:
      return "a text";
    case Type::kSetting:
      return "a text, a whole number or a boolean";
    case Type::kList:
      return "a list";
    case Type::kObject:
      break;
  }
  return "an object";
}

bool is(const Json& json, Type type) {
  switch (type) {
    case Type::kInteger:
      return json.is_int();
    case Type::kNumber:
      return json.is_number();
    case Type::kText:
      return json.is_string();
    case Type::kSetting:
      return json.is_string() || json.is_int() || json.is_bool();
    case Type::kList:
      return json.is_array();
    case Type::kObject:
      break;
  }
  return json.is_object();
}

std::string_view type_of(const Json& json) {
  if (json.is_null()) return "missing or null";
  if (json.is_bool()) return "a boolean";
  if (json.is_int()) return name_of(Type::kInteger);
  for (const Type type : {Type::kNumber, Type::kText, Type::kList}) {
    if (is(json, type)) return name_of(type);
  }
  return name_of(Type::kObject);
}

struct Field {
  std::string_view parent;  // "" is the manifest itself.
  std::string_view key;     // "[]": every item of a list; "{}": every member of an object.
  Type type;
  bool optional = false;
};

constexpr Field kFields[] = {
    {"", "schema", Type::kInteger},
    {"", "graphs", Type::kList},
    {"graphs", "[]", Type::kObject},
    {"graphs[]", "spec", Type::kObject},
    {"graphs[].spec", "name", Type::kText},
    {"graphs[].spec", "inputs", Type::kList},
    {"graphs[].spec.inputs", "[]", Type::kObject},
    {"graphs[].spec.inputs[]", "name", Type::kText},
    {"graphs[].spec.inputs[]", "dtype", Type::kText},
    {"graphs[].spec.inputs[]", "axes", Type::kList},
    {"graphs[].spec.inputs[].axes", "[]", Type::kObject},
    {"graphs[].spec.inputs[].axes[]", "kind", Type::kText},
    {"graphs[].spec.inputs[].axes[]", "min", Type::kInteger},
    {"graphs[].spec.inputs[].axes[]", "max", Type::kInteger},
    {"graphs[].spec.inputs[].axes[]", "multiplier", Type::kInteger, true},
    {"graphs[].spec.inputs[].axes[]", "symbol", Type::kText, true},
    {"graphs[].spec", "outputs", Type::kList},
    {"graphs[].spec.outputs", "[]", Type::kObject},
    {"graphs[].spec.outputs[]", "name", Type::kText},
    {"graphs[].spec.outputs[]", "dtype", Type::kText},
    {"graphs[].spec.outputs[]", "axes", Type::kList},
    {"graphs[].spec.outputs[].axes", "[]", Type::kObject},
    {"graphs[].spec.outputs[].axes[]", "kind", Type::kText},
    {"graphs[].spec.outputs[].axes[]", "min", Type::kInteger},
    {"graphs[].spec.outputs[].axes[]", "max", Type::kInteger},
    {"graphs[].spec.outputs[].axes[]", "multiplier", Type::kInteger, true},
    {"graphs[].spec.outputs[].axes[]", "symbol", Type::kText, true},
    {"graphs[]", "routes", Type::kList},
    {"graphs[].routes", "[]", Type::kObject},
    {"graphs[].routes[]", "payload", Type::kText},
    {"graphs[].routes[]", "ranges", Type::kObject},
    {"graphs[].routes[].ranges", "{}", Type::kList},
    {"graphs[].routes[].ranges{}", "[]", Type::kInteger},
    {"", "payloads", Type::kList},
    {"payloads", "[]", Type::kObject},
    {"payloads[]", "name", Type::kText},
    {"payloads[]", "backend", Type::kText},
    {"payloads[]", "config", Type::kObject},
    {"payloads[].config", "{}", Type::kSetting},
    {"payloads[]", "library_version", Type::kText},
    {"payloads[]", "instruction_sets", Type::kList},
    {"payloads[].instruction_sets", "[]", Type::kText},
    {"", "proofs", Type::kList},
    {"proofs", "[]", Type::kObject},
    {"proofs[]", "graph", Type::kText},
    {"proofs[]", "what", Type::kText},
    {"proofs[]", "tolerances", Type::kList},
    {"proofs[].tolerances", "[]", Type::kObject},
    {"proofs[].tolerances[]", "absolute", Type::kNumber},
    {"proofs[].tolerances[]", "relative", Type::kNumber},
    {"", "report", Type::kObject, true},
    {"report", "winner", Type::kObject, true},
    {"report.winner", "why", Type::kText, true},
    {"report.winner", "selected_batch_size", Type::kInteger, true},
    {"", "sha256", Type::kObject},
    {"sha256", "{}", Type::kText},
};

// `kind` is the path as kFields has it, `where` the one of this very value.
Status check_fields(const Json& value, const std::string& kind, const std::string& where);

Status check_field(const Field& field, const Json& value, const std::string& where) {
  if (field.optional && value.is_null()) return {};
  if (!is(value, field.type)) {
    return Error{Code::kInvalidArgument,
                 format("'{}' is {}, not {}", where, type_of(value), name_of(field.type))};
  }
  const bool plain = field.key == "[]" || field.key == "{}" || field.parent.empty();
  return check_fields(value, format("{}{}{}", field.parent, plain ? "" : ".", field.key), where);
}

Status check_fields(const Json& value, const std::string& kind, const std::string& where) {
  for (const Field& field : kFields) {
    if (field.parent != kind) continue;
    if (field.key == "[]") {
      for (size_t i = 0; i < value.items().size(); ++i) {
        HASTEN_TRY_STATUS(check_field(field, value.items()[i], format("{}[{}]", where, i)));
      }
    } else if (field.key == "{}") {
      for (const auto& [key, member] : value.members()) {
        HASTEN_TRY_STATUS(check_field(field, member, format("{}.{}", where, key)));
      }
    } else {
      const std::string_view dot = where.empty() ? "" : ".";
      HASTEN_TRY_STATUS(
          check_field(field, value[field.key], format("{}{}{}", where, dot, field.key)));
    }
  }
  return {};
}

}  // namespace

Status check_manifest_types(const Json& manifest) { return check_fields(manifest, "", ""); }

}  // namespace hasten
