// SPDX-License-Identifier: Apache-2.0
#include "record/candidate.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace hasten {
namespace {

constexpr std::string_view kForm = "The form is NAME:key=value,key=value.";

bool is_word(std::string_view text) {
  // A registry tells an unknown name from a known one; this only refuses what cannot
  // be a name, so that a slip such as "a=1,b=2" is not searched for as a backend.
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Error malformed(std::string_view text, std::string_view what) {
  return {Code::kInvalidArgument, format("backend '{}': {}", text, what), std::string(kForm)};
}

// Only the canonical spelling, so that "007" and "1e3" come back as they were written.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(value) != text) return std::nullopt;
  return value;
}

}  // namespace

std::string Candidate::label() const {
  std::string text = backend;
  char separator = ':';
  for (const auto& [key, value] : config) {
    text += separator;
    text += key + "=" + value;
    separator = ',';
  }
  return text;
}

Result<Candidate> Candidate::parse(std::string_view text) {
  const size_t colon = text.find(':');
  Candidate candidate;
  candidate.backend = text.substr(0, colon);
  if (candidate.backend.empty()) return malformed(text, "the name is missing");
  if (!is_word(candidate.backend)) {
    return malformed(text, format("'{}' cannot be the name of a backend", candidate.backend));
  }
  if (colon == std::string_view::npos) return candidate;
  if (colon + 1 == text.size()) return malformed(text, "no setting behind the ':'");
  for (const std::string& setting : split(text.substr(colon + 1), ',')) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return malformed(text, format("the setting '{}' has no '='", setting));
    }
    const std::string key = setting.substr(0, equals);
    if (!is_word(key)) return malformed(text, format("'{}' cannot be the name of a setting", key));
    if (!candidate.config.emplace(key, setting.substr(equals + 1)).second) {
      return malformed(text, format("the setting '{}' is given twice", key));
    }
  }
  return candidate;
}

Json Candidate::config_json() const {
  Json json = Json::object();
  for (const auto& [key, value] : config) {
    if (value == "true" || value == "false") {
      json.set(key, value == "true");
    } else if (const auto number = whole_number(value)) {
      json.set(key, *number);
    } else {
      json.set(key, value);
    }
  }
  return json;
}

Candidate Candidate::from_json(const Json& backend, const Json& config) {
  Candidate candidate{.backend = backend.as_string(), .config = {}};
  for (const auto& [key, value] : config.members()) {
    candidate.config[key] = value.is_string() ? value.as_string() : value.dump();
  }
  return candidate;
}

}  // namespace hasten
