// SPDX-License-Identifier: Apache-2.0
#include "graph_inputs.h"

#include <doctest/doctest.h>
#include <hasten/plugin.hpp>

using namespace hasten;  // NOLINT

TEST_CASE("graph_inputs: names, dtypes and smallest sizes; the rest is skipped") {
  const auto inputs = graph_inputs(
      R"({"name": "0", "more": [1, {"a": null}, true, -2.5e3], "inputs": [
          {"name": "x\"é\u0041", "dtype": "float32", "axes": [
            {"kind": "batch", "min": 1, "max": 8, "multiplier": 1, "symbol": "B"},
            {"max": 3, "min": 3}]},
          {"dtype": "int64", "axes": [], "name": "n"}], "outputs": []})");
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0].name == "x\"éA");
  CHECK(inputs[0].dtype == "float32");
  CHECK(inputs[0].smallest == std::vector<int64_t>{1, 3});
  CHECK(inputs[1].name == "n");
  CHECK(inputs[1].smallest.empty());
}

TEST_CASE("graph_inputs: an empty graph has none") {
  CHECK(graph_inputs("{}").empty());
  CHECK(graph_inputs(R"({"inputs":[]})").empty());
}

TEST_CASE("graph_inputs: text that is no JSON is refused") {
  for (const char* text : {"", "[", "{\"inputs\":", "{\"inputs\":[{\"name\":\"x}]}", "{1}"}) {
    INFO(text);
    CHECK_THROWS_AS(graph_inputs(text), PluginError);
  }
}
