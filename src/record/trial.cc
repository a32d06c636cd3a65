// SPDX-License-Identifier: Apache-2.0
#include "record/trial.h"

#include "base/text.h"
#include "record/or_null.h"

#include <array>
#include <cmath>
#include <limits>

namespace hasten {
namespace {

constexpr std::array kStatuses = {TrialStatus::kOk, TrialStatus::kFailed, TrialStatus::kRejected,
                                  TrialStatus::kUnavailable, TrialStatus::kDropped};
constexpr std::array kStages = {Stage::kProbe, Stage::kConvert, Stage::kBuild,
                                Stage::kCheck, Stage::kMeasure, Stage::kConfirm};
constexpr std::array kVerdicts = {Verdict::kFaster, Verdict::kSlower, Verdict::kSame,
                                  Verdict::kCannotTell};

template <class Values>
auto find_word(const Values& values, std::string_view word)
    -> std::optional<typename Values::value_type> {
  for (auto value : values) {
    if (to_string(value) == word) return value;
  }
  return std::nullopt;
}

// Zero means that it never came so far.
Json positive_or_null(double value) { return value > 0 ? Json(value) : Json(); }

Json number_or_null(const std::optional<uint64_t>& value) {
  if (!value) return nullptr;
  return *value;
}

std::optional<uint64_t> optional_size(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  return static_cast<uint64_t>(json.as_int(static_cast<int64_t>(json.as_double())));
}

Json worst_to_json(const WorstDeviation& worst) {
  Json index = Json::array();
  for (int64_t i : worst.index) index.push(i);
  return Json::object({{"output", worst.output},
                       {"index", std::move(index)},
                       {"abs", worst.absolute},
                       {"rel", worst.relative},
                       {"limit", worst.limit}});
}

WorstDeviation worst_from_json(const Json& json) {
  // A difference is null in JSON where only one of the two values is finite.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  WorstDeviation worst{.output = json["output"].as_string(),
                       .index = {},
                       .absolute = json["abs"].as_double(kInfinity),
                       .relative = json["rel"].as_double(kInfinity),
                       .limit = json["limit"].as_double(kInfinity)};
  for (const Json& i : json["index"].items()) worst.index.push_back(i.as_int());
  return worst;
}

Error malformed(std::string_view field, const Json& value) {
  return {Code::kInvalidArgument, format("a trial whose \"{}\" is {}", field, value.dump()),
          "The file is damaged, or another version of hasten wrote it."};
}

Result<std::optional<Failure>> failure_from_json(const Json& json) {
  if (!json.contains("code")) return std::optional<Failure>();
  const auto stage = stage_from_string(json["stage"].as_string());
  if (!stage) return malformed("stage", json["stage"]);
  return std::optional(Failure{.stage = *stage,
                               .error = {.code = code_from_string(json["code"].as_string()),
                                         .message = json["message"].as_string(),
                                         .hint = json["hint"].as_string()}});
}

}  // namespace

std::string_view to_string(TrialStatus status) {
  switch (status) {
    case TrialStatus::kOk:
      return "ok";
    case TrialStatus::kFailed:
      return "failed";
    case TrialStatus::kRejected:
      return "rejected";
    case TrialStatus::kUnavailable:
      return "unavailable";
    case TrialStatus::kDropped:
      break;
  }
  return "dropped";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kProbe:
      return "probe";
    case Stage::kConvert:
      return "convert";
    case Stage::kBuild:
      return "build";
    case Stage::kCheck:
      return "check";
    case Stage::kMeasure:
      return "measure";
    case Stage::kConfirm:
      break;
  }
  return "confirm";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kSame:
      return "same";
    case Verdict::kCannotTell:
      break;
  }
  return "cannot_tell";
}

std::optional<TrialStatus> trial_status_from_string(std::string_view word) {
  return find_word(kStatuses, word);
}
std::optional<Stage> stage_from_string(std::string_view word) { return find_word(kStages, word); }
std::optional<Verdict> verdict_from_string(std::string_view word) {
  return find_word(kVerdicts, word);
}

Json CheckRecord::to_json() const {
  Json names = Json::array();
  for (const std::string& name : checked) names.push(name);
  return Json::object({{"passed", passed},
                       {"rule", text_or_null(rule)},
                       {"message", text_or_null(message)},
                       {"worst", worst ? worst_to_json(*worst) : Json()},
                       {"checked", std::move(names)}});
}

CheckRecord CheckRecord::from_json(const Json& json) {
  CheckRecord record{.passed = json["passed"].as_bool(),
                     .worst = std::nullopt,
                     .rule = json["rule"].as_string(),
                     .message = json["message"].as_string(),
                     .checked = {}};
  if (json["worst"].is_object()) record.worst = worst_from_json(json["worst"]);
  for (const Json& name : json["checked"].items()) record.checked.push_back(name.as_string());
  return record;
}

bool Point::measured() const {
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  return positive(throughput) && positive(latency_ms.estimate);
}

Json Point::to_json() const {
  return Json::object({{"batch_size", batch_size},
                       {"throughput", finite_or_null(throughput)},
                       {"latency_ms", hasten::to_json(latency_ms, "median")},
                       {"speedup", speedup ? hasten::to_json(*speedup) : Json()},
                       {"verdict", to_string(verdict)},
                       {"calls", static_cast<uint64_t>(calls)},
                       {"rounds", static_cast<uint64_t>(rounds)},
                       {"doubt", text_or_null(doubt)},
                       {"left_early", left_early}});
}

Result<Point> Point::from_json(const Json& json) {
  const auto verdict = verdict_from_string(json["verdict"].as_string());
  if (!verdict) return malformed("verdict", json["verdict"]);
  if (!json["batch_size"].is_int()) return malformed("batch_size", json["batch_size"]);
  Point point{.batch_size = json["batch_size"].as_int(),
              .throughput = json["throughput"].as_double(std::nan("")),
              .latency_ms = interval_from_json(json["latency_ms"], "median"),
              .speedup = std::nullopt,
              .verdict = *verdict,
              .calls = static_cast<size_t>(json["calls"].as_int()),
              .rounds = static_cast<size_t>(json["rounds"].as_int()),
              .doubt = json["doubt"].as_string(),
              .left_early = json["left_early"].as_bool()};
  if (json["speedup"].is_object()) point.speedup = interval_from_json(json["speedup"]);
  return point;
}

const Point* Trial::at(int64_t batch_size) const {
  for (const Point& point : points) {
    if (point.batch_size == batch_size) return &point;
  }
  return nullptr;
}

Json Trial::to_json() const {
  Json all_points = Json::array();
  for (const Point& point : points) all_points.push(point.to_json());
  const Error* error = failure ? &failure->error : nullptr;
  return Json::object({{"backend", candidate.backend},
                       {"config", candidate.config_json()},
                       {"status", to_string(status)},
                       {"stage", failure ? Json(to_string(failure->stage)) : Json()},
                       {"code", error ? Json(to_string(error->code)) : Json()},
                       {"message", error ? Json(error->message) : Json()},
                       {"hint", error ? text_or_null(error->hint) : Json()},
                       {"repeat_command", text_or_null(repeat_command)},
                       {"check", check ? check->to_json() : Json()},
                       {"points", std::move(all_points)},
                       {"build_s", positive_or_null(build_s)},
                       {"first_call_ms", positive_or_null(first_call_ms)},
                       {"peak_memory_bytes", number_or_null(peak_memory_bytes)},
                       {"artifact_bytes", number_or_null(artifact_bytes)},
                       {"version", text_or_null(version)},
                       {"graph", graph},
                       {"note", text_or_null(note)}});
}

Result<Trial> Trial::from_json(const Json& json) {
  if (!json["backend"].is_string()) return malformed("backend", json["backend"]);
  const auto status = trial_status_from_string(json["status"].as_string());
  if (!status) return malformed("status", json["status"]);
  Trial trial;
  trial.candidate = Candidate::from_json(json["backend"], json["config"]);
  trial.version = json["version"].as_string();
  trial.graph = json["graph"].as_string();
  trial.status = *status;
  HASTEN_TRY(trial.failure, failure_from_json(json));
  trial.repeat_command = json["repeat_command"].as_string();
  if (json["check"].is_object()) trial.check = CheckRecord::from_json(json["check"]);
  for (const Json& item : json["points"].items()) {
    HASTEN_TRY(Point point, Point::from_json(item));
    trial.points.push_back(std::move(point));
  }
  trial.build_s = json["build_s"].as_double();
  trial.first_call_ms = json["first_call_ms"].as_double();
  trial.peak_memory_bytes = optional_size(json["peak_memory_bytes"]);
  trial.artifact_bytes = optional_size(json["artifact_bytes"]);
  trial.note = json["note"].as_string();
  return trial;
}

}  // namespace hasten
