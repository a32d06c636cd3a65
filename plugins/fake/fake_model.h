// SPDX-License-Identifier: Apache-2.0
// The text format of the fake backend, and the functions that it knows:
//
//   hasten-model fake
//   function affine
//   input x float32[B,3]
//   output y float32[B,3]
//   latency_us 500            (optional: how long a call takes)
//   batch_latency_us 100      (optional: and for each row of the batch)
//   fault run_crash           (optional: of every candidate that names none itself)
//   at_batch 4                (optional: of that fault)
//   after_calls 100           (optional: of that fault)
#pragma once

#include "fake_tensor.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

using hasten::PluginError;

struct Value {
  std::string name, dtype;
  std::vector<std::string> axes;
};

struct Model {
  std::string function = "identity";
  std::vector<Value> inputs, outputs;
  int latency_us = 0, batch_latency_us = 0;
  std::string fault = "none";
  int at_batch = 0, after_calls = 0;
};

struct Function {
  size_t n_inputs, n_outputs;  // 0: as many as the model has.
};

inline const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> known = {
      {"identity", {0, 0}}, {"copy", {0, 0}},     {"affine", {1, 1}}, {"scale", {1, 1}},
      {"add", {2, 1}},      {"sum_rows", {1, 1}}, {"rows", {1, 1}},   {"swap2", {2, 2}},
  };
  return known;
}

inline std::vector<Dense> call(const std::string& function, std::vector<Dense> in) {
  const auto at = [&](size_t i) -> Dense& {
    if (i < in.size()) return in[i];
    throw PluginError(HASTEN_INVALID_ARGUMENT, "fake: " + function + " wants more inputs");
  };
  std::vector<Dense> out;
  if (function == "affine") {
    out.push_back(mapped(at(0), [](auto x) { return x * 2 + 1; }));
  } else if (function == "scale") {
    out.push_back(mapped(at(0), [](auto x) { return x * 2; }));
  } else if (function == "add") {
    out.push_back(sum(at(0), at(1)));
  } else if (function == "sum_rows" || function == "rows") {
    out.push_back(row_sums(at(0)));
  } else if (function == "swap2") {
    out.push_back(at(1));
    out.push_back(at(0));
  } else {
    out = std::move(in);
  }
  return out;
}

inline Value parse_value(std::istringstream& line, const std::string& path) {
  Value value;
  std::string type;
  line >> value.name >> type;
  const size_t open = type.find('[');
  if (value.name.empty() || open == std::string::npos || type.back() != ']') {
    throw PluginError(HASTEN_INVALID_ARGUMENT, path + ": a value is written NAME dtype[axes]");
  }
  value.dtype = type.substr(0, open);
  std::istringstream axes(type.substr(open + 1, type.size() - open - 2));
  for (std::string axis; std::getline(axes, axis, ',');) value.axes.push_back(axis);
  return value;
}

inline Model read_model(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line) || line != "hasten-model fake") {
    throw PluginError(HASTEN_INVALID_ARGUMENT, path + " is no model of the fake backend");
  }
  Model model;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key.empty() || key[0] == '#') continue;
    if (key == "function") {
      words >> model.function;
    } else if (key == "input") {
      model.inputs.push_back(parse_value(words, path));
    } else if (key == "output") {
      model.outputs.push_back(parse_value(words, path));
    } else if (key == "latency_us") {
      words >> model.latency_us;
    } else if (key == "batch_latency_us") {
      words >> model.batch_latency_us;
    } else if (key == "fault") {
      words >> model.fault;
    } else if (key == "at_batch") {
      words >> model.at_batch;
    } else if (key == "after_calls") {
      words >> model.after_calls;
    } else {
      throw PluginError(HASTEN_INVALID_ARGUMENT, path + ": unknown line '" + key + "'");
    }
  }
  if (!functions().contains(model.function)) {
    throw PluginError(HASTEN_UNSUPPORTED, path + ": unknown function '" + model.function + "'");
  }
  return model;
}

inline std::string to_json(const std::vector<Value>& values) {
  const auto quoted = [](const std::string& text) {
    return hasten::plugin_detail::quoted(text);  // Not std::quoted, which ADL would prefer.
  };
  std::string out;
  for (const Value& value : values) {
    std::string axes;
    for (const std::string& axis : value.axes) {
      const bool number = axis.find_first_not_of("0123456789") == std::string::npos;
      axes += (axes.empty() ? "" : ",") + (number ? axis : quoted(axis));
    }
    out += (out.empty() ? "" : ",") + ("{\"name\":" + quoted(value.name)) +
           ",\"dtype\":" + quoted(value.dtype) + ",\"shape\":[" + axes + "]}";
  }
  return "[" + out + "]";
}

}  // namespace fake
