// SPDX-License-Identifier: Apache-2.0
#include "record/tune_record.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hasten {
namespace {

std::vector<std::string> names(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.members()) keys.push_back(key);
  return keys;
}

GraphRecord graph_named(const std::string& name) {
  GraphRecord graph;
  graph.name = name;
  graph.inputs = {"x float32[B=1..2]"};
  graph.outputs = {"y float32[B=1..2]"};
  graph.tolerances = {"y: 1e-5 + 1e-4 x |expected| (default for float32)"};
  graph.baseline.candidate.backend = "eager";
  graph.baseline.graph = name;
  Trial trial;
  trial.candidate = Candidate::parse("onnxruntime:threads=2").value();
  trial.graph = name;
  graph.trials = {trial};
  WinnerRecord winner;
  winner.graph = name;
  winner.candidate = trial.candidate;
  winner.selected_batch_size = 4;
  winner.throughput = 800;
  winner.latency_ms = 5;
  winner.speedup = Interval{1.5, 1.25, 1.75};
  winner.passed = true;
  winner.why = "has the highest throughput";
  graph.winner = winner;
  return graph;
}

TEST_CASE("TuneRecord: the JSON has every field from the start, unknown ones as null") {
  const Json json = TuneRecord{}.to_json();
  CHECK(names(json) == std::vector<std::string>{"schema", "hasten", "environment", "model",
                                                "strategy", "baseline", "trials", "winner",
                                                "artifact", "graphs", "warnings", "error",
                                                "journal", "total_s", "harness_s"});
  CHECK(json["schema"].as_int() == 1);
  CHECK(json["winner"].is_null());
  CHECK(json["baseline"].is_null());
  CHECK(json["artifact"].is_null());
  CHECK(json["trials"].is_array());
}

TEST_CASE("TuneRecord: the winner is told with its figures and the reason") {
  TuneRecord record;
  record.graphs = {graph_named("0")};
  CHECK(record.to_json()["winner"].dump() ==
        R"({"graph":"0","backend":"onnxruntime","config":{"threads":2},"selected_batch_size":4,)"
        R"("throughput":800.0,"latency_ms":5.0,)"
        R"("speedup":{"estimate":1.5,"low":1.25,"high":1.75},)"
        R"("fell_back":false,"passed":true,"why":"has the highest throughput","doubt":null})");
  record.graphs[0].winner->speedup.reset();
  record.graphs[0].winner->throughput = std::nan("");
  CHECK(record.to_json()["winner"]["speedup"].is_null());
  CHECK(record.to_json()["winner"]["throughput"].is_null());
}

TEST_CASE("TuneRecord: several graphs share one list of trials, each has its winner") {
  TuneRecord record;
  record.graphs = {graph_named("0"), graph_named("1")};
  record.graphs[1].winner.reset();
  const Json json = record.to_json();
  REQUIRE(json["trials"].items().size() == 2);
  CHECK(json["trials"].items()[1]["graph"].as_string() == "1");
  REQUIRE(json["graphs"].items().size() == 2);
  CHECK(json["graphs"].items()[0]["winner"]["backend"].as_string() == "onnxruntime");
  CHECK(json["graphs"].items()[1]["winner"].is_null());
  CHECK(json["graphs"].items()[1]["baseline"]["graph"].as_string() == "1");
  CHECK(json["winner"]["graph"].as_string() == "0");
}

TEST_CASE("TuneRecord: an error, warnings and places stand at the top") {
  TuneRecord record;
  record.error = "no correct backend is left";
  record.warnings = {"busy"};
  record.artifact = "/tmp/m.hasten";
  record.journal = "/tmp/m.hasten.journal.jsonl";
  const Json json = record.to_json();
  CHECK(json["error"].as_string() == "no correct backend is left");
  CHECK(json["warnings"].items()[0].as_string() == "busy");
  CHECK(json["artifact"].as_string() == "/tmp/m.hasten");
  CHECK(json["journal"].as_string() == "/tmp/m.hasten.journal.jsonl");
}

}  // namespace
}  // namespace hasten
