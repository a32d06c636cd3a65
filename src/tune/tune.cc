// SPDX-License-Identifier: Apache-2.0
#include <hasten/tune.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/atomic_file.h"
#include "base/machine.h"
#include "base/text.h"
#include "report/table.h"
#include "tune/tuner.h"

namespace hasten {
namespace {

// What a child may take of what is free, so that the machine itself stays alive.
constexpr double kMemoryShare = 0.9;
// What the candidates that wait may hold together: the one that runs grows with its batch.
constexpr double kWaitingShare = 0.5;
// Builds may use this much of --max-time, measuring goes on to here; the rest is for
// confirming the winner and for writing it.
constexpr double kBuildShare = 0.6;
constexpr double kMeasureShare = 0.85;

Result<StrategyOptions> strategy_of(const TuneOptions& options) {
  StrategyOptions strategy;
  strategy.name = options.strategy;
  strategy.min_speedup = options.min_speedup;
  strategy.performance_validation = options.performance_validation;
  const bool wants_budget = options.strategy == StrategyName::kLatencyBudget;
  if (wants_budget != options.latency_budget.has_value()) {
    return Error{Code::kInvalidArgument,
                 wants_budget ? "the strategy latency-budget needs a budget"
                              : "a latency budget is for the strategy latency-budget",
                 wants_budget ? "add --latency-budget 50ms" : "add --strategy latency-budget"};
  }
  if (options.latency_budget) {
    strategy.latency_budget_ms =
        std::chrono::duration<double, std::milli>(*options.latency_budget).count();
    if (*strategy.latency_budget_ms <= 0) {
      return Error{Code::kInvalidArgument, "the latency budget has to be above 0"};
    }
  }
  if (options.strategy == StrategyName::kOneBackend) {
    std::set<std::string> names;
    for (const std::string& text : options.backends) {
      HASTEN_TRY(const Candidate candidate, Candidate::parse(text));
      names.insert(candidate.backend);
    }
    if (names.size() != 1) {
      return Error{
          Code::kInvalidArgument,
          format("the strategy one-backend needs exactly one backend, not {}", names.size()),
          "add --backend NAME"};
    }
  }
  return strategy;
}

// What the command line refuses, a program may still ask for.
Status check_numbers(const TuneOptions& options) {
  const auto wrong = [](std::string_view name, std::string_view wanted) {
    return Error{Code::kInvalidArgument, format("{} has to be {}", name, wanted)};
  };
  const auto is_at_least_0 = [](double x) { return std::isfinite(x) && x >= 0; };
  if (!is_at_least_0(options.min_speedup)) {
    return wrong("the minimal speed-up", "a number of at least 0");
  }
  for (const std::optional<double>& x : {options.absolute_tolerance, options.relative_tolerance}) {
    if (x && !is_at_least_0(*x)) return wrong("a tolerance", "a number of at least 0");
  }
  if (const std::optional<double>& x = options.allow_lossy; x && !(std::isfinite(*x) && *x > 0)) {
    return wrong("the tolerance of lower precision", "a number above 0");
  }
  for (const int64_t size : options.batch_sizes) {
    if (size < 1) return wrong("a batch size", "above 0");
  }
  if (options.threads < 0) return wrong("the number of threads", "at least 0");
  const auto none = std::chrono::nanoseconds(0);
  if (options.max_time && *options.max_time <= none) return wrong("the time for all", "above 0");
  if (options.build_timeout <= none) return wrong("the time for a build", "above 0");
  if (options.run_timeout <= none) return wrong("the time for a call", "above 0");
  return {};
}

// What the tune writes is none of what it reads, and no two of them are one file.
Status check_distinct(const TuneOptions& options) {
  std::vector<std::filesystem::path> taken(options.inputs.begin(), options.inputs.end());
  taken.push_back(options.model);
  HASTEN_TRY_STATUS(check_is_none_of(options.output, taken));
  if (!options.output.empty()) {
    taken.push_back(options.output);
    taken.push_back(journal_path(options.output));
  }
  return check_is_none_of(options.json, taken);
}

Status check_places(const TuneOptions& options) {
  HASTEN_TRY_STATUS(check_distinct(options));
  for (const std::filesystem::path& file : {options.output, options.json}) {
    if (file.empty()) continue;
    HASTEN_TRY_STATUS(check_has_folder(file));
    if (!is_replaceable(file)) {
      // A report is written into a device or a pipe as it is; an archive cannot be.
      if (file == options.json) continue;
      return not_replaceable(file);
    }
    const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
    HASTEN_TRY_STATUS(check_writable(folder));
  }
  if (options.output.empty()) return {};
  const std::filesystem::path journal = journal_path(options.output);
  if (!is_replaceable(journal)) return not_replaceable(journal);
  return {};
}

}  // namespace

Result<TuneReport> tune(const TuneOptions& options, const TuneProgress& progress) {
  HASTEN_TRY_STATUS(check_numbers(options));
  HASTEN_TRY(const StrategyOptions strategy, strategy_of(options));
  HASTEN_TRY_STATUS(check_places(options));
  HASTEN_TRY(const TemporaryFolder folder, TemporaryFolder::create("tune"));
  Workshop shop{.options = options,
                .progress = progress,
                .clock = real_clock(),
                .folder = folder.path(),
                .threads = options.threads > 0 ? options.threads : usable_cpus(),
                .memory_limit_bytes = options.memory_limit_bytes,
                .waiting_limit_bytes = options.waiting_limit_bytes,
                .waiting_bytes = 0,
                .build_deadline = {},
                .deadline = {},
                .end = {},
                .study_deadline = {},
                .racing = {},
                .mutex = {},
                .spawner = {}};
  const auto available = static_cast<double>(available_memory_bytes());
  if (shop.memory_limit_bytes == 0) {
    shop.memory_limit_bytes = static_cast<uint64_t>(kMemoryShare * available);
  }
  if (shop.waiting_limit_bytes == 0) {
    shop.waiting_limit_bytes = static_cast<uint64_t>(kWaitingShare * available);
  }
  if (options.max_time) {
    const std::chrono::nanoseconds now = shop.clock.now();
    const auto after = [&](double share) {
      return now + std::chrono::duration_cast<std::chrono::nanoseconds>(*options.max_time * share);
    };
    shop.build_deadline = after(kBuildShare);
    shop.deadline = after(kMeasureShare);
    shop.end = after(1);
  }

  Tuner tuner(shop, strategy);
  const Status done = tuner.run();
  const TuneRecord& record = tuner.record();
  if (!done) {
    const bool any_trial = std::ranges::any_of(
        record.graphs, [](const GraphRecord& graph) { return !graph.trials.empty(); });
    if (any_trial) {
      TuneRecord shown = record;
      shown.warnings.clear();  // Were told when they came up; the error is the result.
      shown.error.reset();
      shop.say({.kind = TuneEvent::Kind::kTable, .text = table(shown)});
    }
    return done.error();
  }
  TuneReport report;
  report.json = record.to_json().dump(2);
  report.table = table(record);
  report.fell_back = !record.graphs.empty() && record.graphs.front().winner &&
                     record.graphs.front().winner->fell_back;
  return report;
}

}  // namespace hasten
