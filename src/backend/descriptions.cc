// SPDX-License-Identifier: Apache-2.0
// What a plugin may say about itself.
#include <algorithm>
#include <array>
#include <set>

#include "backend/conformance.h"
#include "base/text.h"

namespace hasten {
namespace {

Error illegal(std::string message) { return Error{Code::kInternal, std::move(message)}; }

template <size_t N>
Status only_keys(const Json& json, const std::array<std::string_view, N>& known,
                 std::string_view what) {
  if (!json.is_object()) return illegal(format("{} is no object", what));
  for (const auto& [key, value] : json.members()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return illegal(format("{} has an unknown member '{}'", what, key));
    }
  }
  return {};
}

Status only_strings(const Json& json, std::string_view what) {
  if (!json.is_array()) return illegal(format("'{}' is no list", what));
  for (const Json& item : json.items()) {
    if (!item.is_string() || item.as_string().empty()) {
      return illegal(format("'{}' has an entry that is no text", what));
    }
  }
  return {};
}

Status check_option(const Json& option) {
  static constexpr std::array<std::string_view, 6> kKeys = {"name",    "type",  "default",
                                                            "choices", "stage", "help"};
  static const std::set<std::string> types = {"int", "bool", "enum", "float"};
  HASTEN_TRY_STATUS(only_keys(option, kKeys, "an option"));
  const std::string& name = option["name"].as_string();
  if (name.empty()) return illegal("an option without a name");
  if (name.find_first_of(",=: ") != std::string::npos) {
    return illegal(format("the option '{}' cannot be written on a command line", name));
  }
  const std::string& type = option["type"].as_string();
  if (!types.contains(type)) return illegal(format("option '{}': unknown type '{}'", name, type));
  if (type == "enum" && option["choices"].items().empty()) {
    return illegal(format("option '{}' has no choices", name));
  }
  const std::string& stage = option["stage"].as_string();
  if (option.contains("stage") && stage != "build" && stage != "compile") {
    return illegal(format("option '{}': unknown stage '{}'", name, stage));
  }
  if (option["help"].as_string().empty()) return illegal(format("option '{}' has no help", name));
  return {};
}

}  // namespace

Status check_description(const Json& description) {
  static constexpr std::array<std::string_view, 4> kKeys = {"title", "formats", "inspects",
                                                            "options"};
  HASTEN_TRY_STATUS(only_keys(description, kKeys, "the description"));
  if (description["title"].as_string().empty()) return illegal("no title");
  HASTEN_TRY_STATUS(only_strings(description["formats"], "formats"));
  if (description["formats"].items().empty()) return illegal("no formats: it can build nothing");
  if (description.contains("inspects")) {
    HASTEN_TRY_STATUS(only_strings(description["inspects"], "inspects"));
  }
  std::set<std::string> names;
  for (const Json& option : description["options"].items()) {
    HASTEN_TRY_STATUS(check_option(option));
    if (!names.insert(option["name"].as_string()).second) {
      return illegal(format("two options '{}'", option["name"].as_string()));
    }
  }
  return {};
}

Status check_candidates(const Json& candidates, const Json& description) {
  static constexpr std::array<std::string_view, 2> kKeys = {"role", "config"};
  static const std::set<std::string> roles = {"baseline", "oracle", "default", "lossy", "extra"};
  std::set<std::string> options;
  for (const Json& option : description["options"].items()) {
    options.insert(option["name"].as_string());
  }
  if (!candidates.is_array()) return illegal("the candidates are no list");
  int baselines = 0;
  for (const Json& candidate : candidates.items()) {
    HASTEN_TRY_STATUS(only_keys(candidate, kKeys, "a candidate"));
    const std::string& role = candidate["role"].as_string();
    if (!roles.contains(role)) return illegal(format("unknown role '{}'", role));
    if (role == "baseline") ++baselines;
    for (const auto& [key, value] : candidate["config"].members()) {
      if (!options.contains(key))
        return illegal(format("a candidate sets unknown option '{}'", key));
      if (!value.is_string()) return illegal(format("a candidate's '{}' is no text", key));
    }
  }
  if (baselines > 1) return illegal("more than one baseline");
  return {};
}

}  // namespace hasten
