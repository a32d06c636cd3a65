// SPDX-License-Identifier: Apache-2.0
// A candidate: a backend with one configuration. The identity of what is tried.
#pragma once

#include <hasten/result.h>

#include "base/json.h"

#include <map>
#include <string>
#include <string_view>

namespace hasten {

struct Candidate {
  std::string backend;
  std::map<std::string, std::string> config;  // As the user would write it: {"threads","2"}.

  std::string label() const;  // "onnxruntime:graph=basic,threads=2"
  // "NAME" or "NAME:key=value,key=value"; the inverse of label().
  static Result<Candidate> parse(std::string_view text);
  Json config_json() const;  // Whole numbers and true/false without quotes.
  static Candidate from_json(const Json& backend, const Json& config);

  friend bool operator==(const Candidate&, const Candidate&) = default;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

}  // namespace hasten
