// SPDX-License-Identifier: Apache-2.0
#include "strategy/strategy.h"

#include "base/text.h"
#include "strategy/standing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace hasten {
namespace {

struct Name {
  StrategyName name;
  std::string_view text;
};
constexpr Name kNames[] = {{StrategyName::kOneBackend, "one-backend"},
                           {StrategyName::kFirstWins, "first-wins"},
                           {StrategyName::kMaxThroughput, "max-throughput"},
                           {StrategyName::kMinLatency, "min-latency"},
                           {StrategyName::kLatencyBudget, "latency-budget"}};

// What all rules look at: the usable trials in the user's order, and the original.
struct Field {
  const StrategyOptions& options;
  std::span<const Trial> trials;
  const Trial* original = nullptr;  // Measured; whether or not it takes part.
  const Point* original_point = nullptr;
  bool gated = false;               // The original takes part.
  std::vector<Standing> standings;  // Of usable trials with a figure that counts.
  std::vector<size_t> others;       // Usable, but without one.
};

Field survey(const StrategyOptions& options, std::span<const Trial> trials,
             const std::optional<Trial>& baseline) {
  Field field{.options = options,
              .trials = trials,
              .original = measured_or_null(baseline),
              .original_point = nullptr,
              .gated = false,
              .standings = {},
              .others = {}};
  const bool takes_part = options.performance_validation && field.original;
  const int64_t size = std::any_of(trials.begin(), trials.end(), usable) || !field.original
                           ? latency_size(trials)
                           : latency_size({field.original, 1});
  if (field.original) {
    field.original_point = judged_point(options, *field.original, nullptr, size);
  }
  field.gated = takes_part && field.original_point;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!usable(trials[i])) continue;
    const Point* point =
        judged_point(options, trials[i], field.gated ? field.original : nullptr, size);
    if (point) {
      field.standings.push_back({.trial = i, .point = point, .score = score(options, *point)});
    } else {
      field.others.push_back(i);
    }
  }
  return field;
}

bool meets(const Field& field, const Standing& standing) {
  return field.original && field.original_point &&
         displaces(field.options, *standing.point, *field.original, *field.original_point);
}

std::vector<size_t> ranked_without(const Field& field, std::optional<size_t> chosen) {
  std::vector<Standing> sorted = field.standings;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Standing& a, const Standing& b) { return a.score > b.score; });
  std::vector<size_t> order;
  for (const Standing& standing : sorted) order.push_back(standing.trial);
  order.insert(order.end(), field.others.begin(), field.others.end());
  std::erase_if(order, [&](size_t i) { return i == chosen; });
  return order;
}

std::string times(const Interval& speedup) {
  const std::string text = format("{:.3g} times as fast as the original", speedup.estimate);
  // Too few rounds give an interval without an end.
  return std::isfinite(speedup.high)
             ? text + format(" ({:.3g} … {:.3g})", speedup.low, speedup.high)
             : text;
}

Choice chosen(const Field& field, const Standing& standing, std::string_view rule) {
  const Point& point = *standing.point;
  Choice choice;
  choice.trial = standing.trial;
  choice.selected_batch_size = point.batch_size;
  choice.throughput = point.throughput;
  choice.latency_ms = point.latency_ms.estimate;
  choice.speedup = speedup_over(field.original, point);
  choice.doubt = point.doubt;
  choice.passed = meets(field, standing);
  choice.why = format("{} {} at batch size {}", field.trials[standing.trial].candidate.label(),
                      rule, point.batch_size);
  if (choice.speedup) choice.why += ", in the race " + times(*choice.speedup);
  if (!field.original) choice.why += "; the original was not measured";
  choice.runners_up = ranked_without(field, standing.trial);
  return choice;
}

Choice original_kept(const Field& field, std::string why) {
  Choice choice;
  choice.fell_back = true;
  choice.why = std::move(why);
  choice.runners_up = ranked_without(field, std::nullopt);
  if (const Point* point = field.original_point) {
    choice.selected_batch_size = point->batch_size;
    choice.throughput = point->throughput;
    choice.latency_ms = point->latency_ms.estimate;
    choice.speedup = Interval{.estimate = 1, .low = 1, .high = 1};
  }
  return choice;
}

Error nothing_left(const Field& field) {
  if (field.trials.empty()) {
    return {Code::kUnsupported, "no backend was tried",
            "`hasten backends` lists what can run here."};
  }
  return {Code::kUnsupported, "no correct backend is left: " + all_reasons(field.trials),
          "Each reason is in the report; a trial's repeat_command shows one alone."};
}

// The best of these, an earlier one if it ties with it.
const Standing& first_of_the_best(const std::vector<Standing>& standings) {
  double best = 0;
  for (const Standing& standing : standings) best = std::max(best, standing.score);
  return *std::find_if(standings.begin(), standings.end(), [&](const Standing& standing) {
    return standing.score >= best * (1 - kTie);
  });
}

std::vector<Standing> passing(const Field& field) {
  if (!field.gated) return field.standings;
  std::vector<Standing> out;
  std::copy_if(field.standings.begin(), field.standings.end(), std::back_inserter(out),
               [&](const Standing& standing) { return meets(field, standing); });
  return out;
}

// Why the original stays although there are correct candidates.
std::string not_faster(const Field& field) {
  if (field.standings.empty()) {
    return "the original model is kept: no candidate is correct and measured (" +
           all_reasons(field.trials) + ")";
  }
  const Standing& best = first_of_the_best(field.standings);
  const Trial& trial = field.trials[best.trial];
  const Point& point = *best.point;
  const Point& original = *field.original_point;
  const std::string text =
      format("the original model is kept: the best candidate, {}, ", trial.candidate.label());
  // The figures are those of one batch size wherever both have been measured at one.
  const bool gate = field.options.name == StrategyName::kOneBackend ||
                    field.options.name == StrategyName::kFirstWins;
  const bool ahead = best.score > score(field.options, original);
  const Point* shown = gate || ahead ? &point : trial.at(original.batch_size);
  const auto speedup = shown && shown->measured() ? speedup_over(field.original, *shown)
                                                  : std::nullopt;
  const bool told_by_another_size =
      ahead && point.verdict == Verdict::kFaster && point.batch_size != original.batch_size;
  if (!speedup || (!gate && told_by_another_size)) {
    return text + format("reaches {:.4g} rows/s (batch size {}) and the original {:.4g} rows/s "
                         "(batch size {}){}",
                         point.throughput, point.batch_size, original.throughput,
                         original.batch_size, ahead ? ", too close to tell from the noise" : "");
  }
  const std::string is = format("is {} at batch size {}", times(*speedup), shown->batch_size);
  if (gate) return text + is + format(", and {:.4g} is asked for", 1 + field.options.min_speedup);
  if (shown->verdict == Verdict::kSame) return text + is + ", which is the same within the noise";
  if (ahead || shown->verdict == Verdict::kCannotTell) {
    return text + is + ", which cannot be told from the noise";
  }
  return text + is;
}

// The error of a candidate, unchanged; none for one that merely was not measured.
std::optional<Error> own_error(const Trial& trial) {
  if (trial.failure) return trial.failure->error;
  if (trial.check && !trial.check->passed) {
    return Error{Code::kWrongResult, trial.candidate.label() + ": " + reason_against(trial), ""};
  }
  return std::nullopt;
}

Result<Choice> one_backend(const Field& field) {
  const std::vector<Standing> good = passing(field);
  if (!good.empty()) return chosen(field, first_of_the_best(good), "is the backend asked for");
  const bool all_failed = std::all_of(field.trials.begin(), field.trials.end(),
                                      [](const Trial& t) { return own_error(t).has_value(); });
  if (!field.trials.empty() && all_failed) return *own_error(field.trials.front());
  if (!field.gated) return nothing_left(field);
  return original_kept(field, not_faster(field));
}

Result<Choice> first_wins(const Field& field) {
  const std::vector<Standing> good = passing(field);
  if (!good.empty()) {
    return chosen(
        field, good.front(),
        field.gated ? "is the first that is correct and faster" : "is the first that is correct");
  }
  if (!field.options.performance_validation) return nothing_left(field);
  return original_kept(field, not_faster(field));
}

Error over_budget(const Field& field) {
  const double budget = *field.options.latency_budget_ms;
  const Trial* nearest = nullptr;
  const Point* nearest_point = nullptr;
  for (size_t i : field.others) {
    for (const Point& point : field.trials[i].points) {
      if (!point.measured()) continue;
      if (nearest && point.latency_ms.estimate >= nearest_point->latency_ms.estimate) continue;
      nearest = &field.trials[i];
      nearest_point = &point;
    }
  }
  if (!nearest) return nothing_left(field);
  return {Code::kUnsupported,
          format("no backend answers within {:.4g} ms; the nearest is {} at batch size {} with "
                 "{:.4g} ms",
                 budget, nearest->candidate.label(), nearest_point->batch_size,
                 nearest_point->latency_ms.estimate),
          format("A budget of {:.4g} ms would let it in, or try smaller batch sizes.",
                 std::ceil(nearest_point->latency_ms.estimate * 100) / 100)};
}

Result<Choice> best_of(const Field& field, std::string_view rule) {
  const bool budget = field.options.name == StrategyName::kLatencyBudget;
  if (field.standings.empty() && budget) return over_budget(field);
  const std::vector<Standing> good = passing(field);
  if (!good.empty()) return chosen(field, first_of_the_best(good), rule);
  if (!field.gated) return nothing_left(field);
  return original_kept(field, not_faster(field));
}

}  // namespace

std::string_view to_string(StrategyName name) {
  for (const Name& known : kNames) {
    if (known.name == name) return known.text;
  }
  return "max-throughput";
}

std::optional<StrategyName> strategy_from_string(std::string_view text) {
  for (const Name& known : kNames) {
    if (known.text == text) return known.name;
  }
  return std::nullopt;
}

Json to_json(const StrategyOptions& options) {
  return Json::object(
      {{"name", to_string(options.name)},
       {"min_speedup", options.min_speedup},
       {"latency_budget_ms", options.latency_budget_ms ? Json(*options.latency_budget_ms) : Json()},
       {"performance_validation", options.performance_validation}});
}

Result<Choice> choose(const StrategyOptions& options, std::span<const Trial> trials,
                      const std::optional<Trial>& baseline) {
  if (options.name == StrategyName::kLatencyBudget &&
      !(options.latency_budget_ms.value_or(0) > 0)) {
    return Error{Code::kInvalidArgument, "the strategy latency-budget needs a budget above 0",
                 "For example: --latency-budget 50ms"};
  }
  const Field field = survey(options, trials, baseline);
  switch (options.name) {
    case StrategyName::kOneBackend:
      return one_backend(field);
    case StrategyName::kFirstWins:
      return first_wins(field);
    case StrategyName::kMinLatency:
      return best_of(field, "has the lowest latency");
    case StrategyName::kLatencyBudget:
      return best_of(field, "has the highest throughput within the budget");
    case StrategyName::kMaxThroughput:
      break;
  }
  return best_of(field, "has the highest throughput");
}

Choice keep_original(const StrategyOptions& options, std::span<const Trial> trials,
                     const Trial& baseline, std::string why) {
  return original_kept(survey(options, trials, baseline), "the original model is kept: " + why);
}

bool decided(const StrategyOptions& options, std::span<const Trial> trials_so_far,
             const std::optional<Trial>& baseline) {
  return options.name == StrategyName::kFirstWins &&
         !passing(survey(options, trials_so_far, baseline)).empty();
}

std::vector<int64_t> sizes_to_measure(const StrategyOptions& options,
                                      const std::vector<int64_t>& given, bool has_batch_axis) {
  if (options.name == StrategyName::kMinLatency || !has_batch_axis) return {1};
  std::vector<int64_t> sizes;
  std::copy_if(given.begin(), given.end(), std::back_inserter(sizes),
               [](int64_t size) { return size > 0; });
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  // Beyond 64 rows a CPU of any size has all its vector lanes and cores busy.
  if (sizes.empty()) sizes = {1, 2, 4, 8, 16, 32, 64};
  return sizes;
}

bool SweepIsFlat::done(double throughput) {
  constexpr double kGain = 1.05;
  constexpr size_t kMostFlat = 2;
  const bool measured = std::isfinite(throughput);
  const bool rose = measured && throughput > 0 && throughput >= best_ * kGain;
  if (measured) best_ = std::max(best_, throughput);
  flat_ = rose ? 0 : flat_ + 1;
  return flat_ >= kMostFlat;
}

}  // namespace hasten
