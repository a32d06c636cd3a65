// SPDX-License-Identifier: Apache-2.0
// Hand-made trials for the tests of this folder.
#pragma once

#include "record/trial.h"
#include "strategy/strategy.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {

// Speed-up and verdict as a race would give them: against `baseline_ms`; 0: no baseline.
inline Point test_point(int64_t batch_size, double latency_ms, double baseline_ms,
                        Verdict verdict) {
  Point point;
  point.batch_size = batch_size;
  point.latency_ms = {.estimate = latency_ms, .low = latency_ms, .high = latency_ms};
  point.throughput = static_cast<double>(batch_size) * 1000 / latency_ms;
  point.verdict = verdict;
  if (baseline_ms > 0) {
    const double ratio = baseline_ms / latency_ms;
    point.speedup = Interval{.estimate = ratio, .low = ratio, .high = ratio};
  }
  return point;
}

inline Trial test_trial(std::string label, std::vector<Point> points) {
  Trial trial;
  trial.candidate = Candidate::parse(label).value();
  trial.status = TrialStatus::kOk;
  trial.check = CheckRecord{};
  trial.check->passed = true;
  trial.points = std::move(points);
  return trial;
}

// One point at batch size 1: rows per second, and the original's.
inline Trial test_speed(std::string label, double throughput, double baseline, Verdict verdict) {
  return test_trial(std::move(label), {test_point(1, 1000 / throughput,
                                                  baseline > 0 ? 1000 / baseline : 0, verdict)});
}

inline Trial test_baseline(std::vector<Point> points) {
  Trial trial = test_trial("eager", std::move(points));
  trial.check.reset();
  return trial;
}

inline Trial test_failure(std::string label, Stage stage, Code code, std::string message) {
  Trial trial;
  trial.candidate = Candidate::parse(label).value();
  trial.status = TrialStatus::kFailed;
  trial.failure = Failure{.stage = stage, .error = {code, std::move(message), "a hint"}};
  return trial;
}

inline Trial test_wrong(std::string label, double throughput) {
  Trial trial = test_speed(std::move(label), throughput, 100, Verdict::kFaster);
  trial.status = TrialStatus::kRejected;
  trial.check->passed = false;
  trial.check->rule = "values";
  trial.check->message = "output 'y' off by 0.5";
  return trial;
}

inline constexpr Verdict kFaster = Verdict::kFaster;
inline constexpr Verdict kSlower = Verdict::kSlower;
inline constexpr Verdict kSame = Verdict::kSame;
inline constexpr Verdict kCannotTell = Verdict::kCannotTell;

inline StrategyOptions with(StrategyName name) {
  StrategyOptions options;
  options.name = name;
  return options;
}

// The original: 100 rows per second at batch size 1.
inline Trial original() { return test_baseline({test_point(1, 10, 0, kSame)}); }

inline std::string label_of(const Result<Choice>& choice, const std::vector<Trial>& trials) {
  if (!choice) return "error: " + choice.error().message;
  return choice->trial ? trials[*choice->trial].candidate.label() : "original";
}

inline bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hasten
