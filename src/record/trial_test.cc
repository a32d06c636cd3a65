// SPDX-License-Identifier: Apache-2.0
#include "record/trial.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hasten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Trial full_trial() {
  Trial trial;
  trial.candidate = Candidate::parse("onnxruntime:threads=2").value();
  trial.version = "1.23.0";
  trial.status = TrialStatus::kOk;
  trial.repeat_command = "hasten tune m.onnx --backend onnxruntime:threads=2";
  trial.check = CheckRecord{.passed = true,
                            .worst = WorstDeviation{.output = "logits",
                                                    .index = {0, 17},
                                                    .absolute = 1e-6,
                                                    .relative = 2e-6,
                                                    .limit = 0.25},
                            .rule = "",
                            .message = "",
                            .checked = {"sample 0", "sample 0 at batch 7 (not recorded)"}};
  trial.points = {{.batch_size = 4,
                   .throughput = 800,
                   .latency_ms = {.estimate = 5, .low = 4.9, .high = 5.1},
                   .speedup = Interval{.estimate = 1.5, .low = 1.4, .high = 1.6},
                   .verdict = Verdict::kFaster,
                   .calls = 200,
                   .rounds = 12}};
  trial.build_s = 1.25;
  trial.first_call_ms = 9.5;
  trial.peak_memory_bytes = 88000000;
  trial.artifact_bytes = 46000000;
  return trial;
}

TEST_CASE("Trial: the JSON has the fields of the schema, absent things as null") {
  CHECK(
      full_trial().to_json().dump() ==
      R"J({"backend":"onnxruntime","config":{"threads":2},"status":"ok","stage":null,"code":null,)J"
      R"J("message":null,"hint":null,)J"
      R"J("repeat_command":"hasten tune m.onnx --backend onnxruntime:threads=2",)J"
      R"J("check":{"passed":true,"rule":null,"message":null,)J"
      R"J("worst":{"output":"logits","index":[0,17],"abs":1e-06,"rel":2e-06,"limit":0.25},)J"
      R"J("checked":["sample 0","sample 0 at batch 7 (not recorded)"]},)J"
      R"J("points":[{"batch_size":4,"throughput":800.0,)J"
      R"J("latency_ms":{"median":5.0,"low":4.9,"high":5.1},)J"
      R"J("speedup":{"estimate":1.5,"low":1.4,"high":1.6},"verdict":"faster",)J"
      R"J("calls":200,"rounds":12,"doubt":null,"left_early":false}],"build_s":1.25,"first_call_ms":9.5,)J"
      R"J("peak_memory_bytes":88000000,"artifact_bytes":46000000,"version":"1.23.0",)J"
      R"J("graph":"0","note":null})J");
}

TEST_CASE("Trial: from_json is the inverse of to_json") {
  Trial failed;
  failed.candidate.backend = "fake";
  failed.status = TrialStatus::kFailed;
  failed.failure = Failure{.stage = Stage::kConvert,
                           .error = {Code::kCrashed, "died of SIGSEGV", "see the log"}};
  failed.note = "twice";
  Trial rejected = full_trial();
  rejected.status = TrialStatus::kRejected;
  rejected.check->passed = false;
  rejected.check->rule = "values";
  rejected.check->message = "output 'logits' off";
  rejected.check->worst->absolute = kInfinity;
  for (const Trial& trial : {full_trial(), failed, rejected, Trial{}}) {
    const Json json = trial.to_json();
    const auto parsed = Json::parse(json.dump());
    REQUIRE(parsed);
    const auto back = Trial::from_json(*parsed);
    REQUIRE(back);
    CHECK(back->to_json().dump() == json.dump());
    CHECK(back->candidate == trial.candidate);
  }
  const Trial back = Trial::from_json(failed.to_json()).value();
  REQUIRE(back.failure);
  CHECK(back.failure->stage == Stage::kConvert);
  CHECK(back.failure->error.code == Code::kCrashed);
  CHECK(back.failure->error.message == "died of SIGSEGV");
  CHECK(back.failure->error.hint == "see the log");
  CHECK(Trial::from_json(rejected.to_json()).value().check->worst->absolute == kInfinity);
}

TEST_CASE("Trial: a figure that is no number is null in JSON and no number afterwards") {
  Trial trial = full_trial();
  trial.points[0].throughput = std::nan("");
  trial.points[0].speedup->high = kInfinity;
  const auto json = Json::parse(trial.to_json().dump());
  REQUIRE(json);
  CHECK((*json)["points"].items()[0]["throughput"].is_null());
  const auto back = Trial::from_json(*json);
  REQUIRE(back);
  CHECK(std::isnan(back->points[0].throughput));
  CHECK(back->points[0].speedup->high == kInfinity);
  CHECK_FALSE(back->points[0].measured());
}

TEST_CASE("Trial: a damaged record names the field that is wrong") {
  struct Case {
    std::string field;
    Json value;
  };
  const Case cases[] = {{"backend", Json()}, {"status", Json("great")}, {"status", Json(3)}};
  for (const Case& c : cases) {
    CAPTURE(c.field);
    Json json = full_trial().to_json();
    json.set(c.field, c.value);
    const auto trial = Trial::from_json(json);
    REQUIRE_FALSE(trial);
    CHECK(trial.error().code == Code::kInvalidArgument);
    CHECK(trial.error().message.find("\"" + c.field + "\"") != std::string::npos);
  }
  Json json = full_trial().to_json();
  Json point = json["points"].items()[0];
  point.set("verdict", "perhaps");
  Json points = Json::array();
  points.push(point);
  json.set("points", points);
  CHECK_FALSE(Trial::from_json(json));
  CHECK_FALSE(Trial::from_json(Json("text")));
}

TEST_CASE("Trial: every word of a status, a stage and a verdict reads back") {
  for (const char* word : {"ok", "failed", "rejected", "unavailable", "dropped"}) {
    CHECK(to_string(trial_status_from_string(word).value()) == word);
  }
  for (const char* word : {"probe", "convert", "build", "check", "measure", "confirm"}) {
    CHECK(to_string(stage_from_string(word).value()) == word);
  }
  for (const char* word : {"faster", "slower", "same", "cannot_tell"}) {
    CHECK(to_string(verdict_from_string(word).value()) == word);
  }
  CHECK_FALSE(verdict_from_string("Faster"));
}

TEST_CASE("Trial: a point is found by its batch size") {
  const Trial trial = full_trial();
  REQUIRE(trial.at(4) != nullptr);
  CHECK(trial.at(4)->throughput == 800);
  CHECK(trial.at(1) == nullptr);
}

TEST_CASE("Point: only finite figures above zero are a measurement") {
  Point point;
  point.throughput = 10;
  point.latency_ms = {.estimate = 100, .low = 99, .high = 101};
  CHECK(point.measured());
  for (double bad : {0.0, -1.0, kInfinity, std::nan("")}) {
    Point other = point;
    other.throughput = bad;
    CHECK_FALSE(other.measured());
    other = point;
    other.latency_ms.estimate = bad;
    CHECK_FALSE(other.measured());
  }
}

}  // namespace
}  // namespace hasten
