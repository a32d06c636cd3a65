// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <algorithm>
#include <limits>
#include <set>

#include "backend/registry.h"
#include "base/atomic_file.h"
#include "base/machine.h"
#include "base/text.h"
#include "measure/noise.h"
#include "report/figures.h"
#include "tensor/npz.h"
#include "tune/contest.h"
#include "tune/lineup.h"

namespace hasten {
namespace {

// Strategies that stop at the first that is good enough try one after the other.
bool one_by_one(StrategyName name) {
  return name == StrategyName::kFirstWins || name == StrategyName::kOneBackend;
}

Status write_samples(const std::filesystem::path& folder, const Original& original) {
  HASTEN_TRY_STATUS(make_folder(folder));
  for (size_t i = 0; i < original.samples.size(); ++i) {
    const std::filesystem::path file = folder / format("sample-{}.npz", i);
    HASTEN_TRY_STATUS(write_npz(file, positional(original.samples[i].inputs)));
  }
  return {};
}

std::vector<Trial> trials_of(const std::vector<Contestant>& contestants) {
  std::vector<Trial> trials;
  for (const Contestant& contestant : contestants) trials.push_back(contestant.trial);
  return trials;
}

std::optional<Trial> baseline_of(const Original& original) {
  if (original.trial.points.empty()) return std::nullopt;
  return original.trial;
}

// A text that names no candidate is told of when the lineup is made.
std::vector<std::string> names_of(const std::vector<std::string>& backends) {
  std::vector<std::string> names;
  for (const std::string& text : backends) {
    if (const auto candidate = Candidate::parse(text)) names.push_back(candidate->backend);
  }
  return names;
}

// Those for which there is room, moved into the range that the user gave.
std::vector<int64_t> sizes_in_range(const Original& original, std::vector<int64_t> sizes) {
  if (!original.graph.has_batch_axis()) return sizes;
  if (original.batch_has_range) {
    const int64_t low = std::max<int64_t>(1, original.graph.min_batch());
    const int64_t high = std::max(low, original.graph.max_batch());
    for (int64_t& size : sizes) size = std::clamp(size, low, high);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  }
  const auto limit = static_cast<double>(input_limit_bytes());
  const auto first_too_large = std::ranges::find_if(sizes, [&](int64_t size) {
    return bytes_of_batch(original.graph, original.samples.front().inputs, size) > limit;
  });
  // The first is measured in any case: without a figure there is no choice.
  sizes.erase(std::max(first_too_large, sizes.begin() + 1), sizes.end());
  return sizes;
}

std::vector<std::string> describe(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> lines;
  for (const TensorSpec& spec : specs) lines.push_back(spec.describe());
  return lines;
}

// Those of the winner, where it is known.
std::vector<std::string> describe_tolerances(const Original& original, bool lossy) {
  std::vector<std::string> lines;
  const std::vector<OutputTolerance>& tolerances = original.tolerances_for(lossy);
  for (size_t i = 0; i < tolerances.size(); ++i) {
    const OutputTolerance& t = tolerances[i];
    lines.push_back(format("{}: {:.2g} + {:.2g} x |expected| ({})", original.output_names[i],
                           t.tolerance.absolute, t.tolerance.relative, t.source));
  }
  return lines;
}

}  // namespace

Status Tuner::look_around() {
  shop_.say("inspect", shop_.options.model.string());
  HASTEN_TRY(model_, open_model(shop_.options.model));
  if (model_.format == "hasten") {
    return Error{Code::kInvalidArgument, format("{} is an artifact already", model_.path.string()),
                 "tune the model that it was made from"};
  }
  record_.model = Json::object({{"path", model_.path.string()},
                                {"format", model_.format},
                                {"size_bytes", model_.size_bytes},
                                {"fingerprint", model_.fingerprint}});
  HASTEN_TRY(const Registry registry, Registry::scan(shop_.options.plugins));
  scouted_ = scout(shop_.spawner, registry.entries(), &model_,
                   {.work_dir = shop_.folder,
                    .threads = shop_.threads,
                    .wanted = names_of(shop_.options.backends),
                    .slow = [&](const std::string& who) { shop_.say("inspect", "waiting for " + who); },
                    .stop = shop_.options.stop});
  if (shop_.stopped()) return Error{Code::kCancelled, "the tune was ended"};
  Result<Compilers> compilers = Compilers::read(python_package_folder());
  if (compilers) {
    compilers_ = std::move(*compilers);
  } else {
    record_.warnings.push_back(compilers.error().message +
                               "; only backends that take the model as it is can be tried");
  }
  HASTEN_TRY_STATUS(check_named(shop_.options, scouted_, compilers_, model_));
  HASTEN_TRY(signature_, signature_of(model_, scouted_));
  return {};
}

void Tuner::build_and_measure(GraphOutcome& outcome, Conversions& conversions) {
  Original& original = outcome.original;
  const ContestOptions contest = contest_options(original);
  const std::span<Contestant> all = outcome.contestants;
  if (!original.repeatable) {
    for (Contestant& contestant : all) {
      if (!contestant.trial.failure) contestant.trial.note = "the original does not repeat itself";
    }
    measure(shop_, original, {}, contest);
    return;
  }
  const size_t step = one_by_one(strategy_.name) ? 1 : std::max<size_t>(1, all.size());
  size_t& tried = outcome.tried;
  while (tried < all.size() && !shop_.stopped()) {
    const std::span<Contestant> some = all.subspan(tried, std::min(step, all.size() - tried));
    tried += some.size();
    build_and_check(shop_, conversions, original, some);
    if (shop_.stopped()) return;
    measure(shop_, original, some, contest);
    write_down(outcome, false);
    const std::vector<Trial> so_far = trials_of(outcome.contestants);
    if (one_by_one(strategy_.name) &&
        decided(strategy_, std::span(so_far).first(tried), baseline_of(original))) {
      return;
    }
  }
  if (all.empty()) measure(shop_, original, {}, contest);
}

bool Tuner::within_budget(const Point& point) const {
  return point.latency_ms.estimate <=
         strategy_.latency_budget_ms.value_or(std::numeric_limits<double>::infinity());
}

bool Tuner::stands(const GraphOutcome& outcome, const Point& confirmed, std::string& why) const {
  if (!within_budget(confirmed)) {
    why = format("measured again it takes {:.3g} ms, over the budget", confirmed.latency_ms.estimate);
    return false;
  }
  if (!strategy_.performance_validation || !confirmed.speedup) return true;
  const double speedup = confirmed.speedup->estimate;
  why = format("measured again it is {} times as fast", ratio_text(*confirmed.speedup));
  // The gate is about the estimate, which noise alone may lift over it.
  const bool doubtful =
      confirmed.verdict == Verdict::kCannotTell || confirmed.verdict == Verdict::kSlower;
  if (one_by_one(strategy_.name)) return speedup >= 1 + strategy_.min_speedup && !doubtful;
  if (strategy_.name == StrategyName::kLatencyBudget) {
    const std::vector<Point>& points = outcome.original.trial.points;
    if (std::none_of(points.begin(), points.end(),
                     [&](const Point& p) { return within_budget(p); })) {
      return true;
    }
  }
  return confirmed.verdict == Verdict::kFaster;
}

Status Tuner::settle(GraphOutcome& outcome, Conversions& conversions) {
  std::string too_slow;  // Who kept every other condition, and what was found of it.
  for (size_t attempt = 0;; ++attempt) {
    const std::vector<Trial> trials = trials_of(outcome.contestants);
    const std::optional<Trial> baseline = baseline_of(outcome.original);
    Result<Choice> next = choose(strategy_, trials, baseline);
    if (!next && !too_slow.empty() && baseline) {
      // Nobody is left, and that a backend kept the budget stays true: that is no error.
      outcome.choice = keep_original(strategy_, trials, *baseline, too_slow);
      return {};
    }
    HASTEN_TRY(outcome.choice, std::move(next));
    Choice& choice = outcome.choice;
    if (!choice.trial) return {};
    Contestant& contestant = outcome.contestants[*choice.trial];
    const std::string label = contestant.trial.candidate.label();
    shop_.say({.kind = TuneEvent::Kind::kCandidate,
               .stage = "confirm",
               .candidate = label,
               .text = format("in new processes, at batch {}", choice.selected_batch_size)});
    const Result<Point> point =
        confirm(shop_, outcome.original, contestant, choice.selected_batch_size,
                shop_.folder / format("graph-{}-confirm-{}", outcome.original.graph.name, attempt));
    if (shop_.stopped()) return Error{Code::kCancelled, "the tune was ended"};
    std::string why;
    if (point && stands(outcome, *point, why)) {
      choice.speedup = point->speedup;
      choice.doubt = point->doubt;
      choice.throughput = point->throughput;
      choice.latency_ms = point->latency_ms.estimate;
      return {};
    }
    // It gives way to the next: its figures do not hold where they count.
    if (point) {
      if (within_budget(*point)) too_slow = label + ", " + why;
      contestant.give_way("not confirmed: " + why);
    } else {
      const bool wrong = point.error().code == Code::kWrongResult;
      contestant.trial.points.clear();
      contestant.fail(Stage::kConfirm, point.error(),
                      wrong ? TrialStatus::kRejected : TrialStatus::kFailed);
    }
    shop_.say("confirm", format("{} gives way: {}", label, point ? why : point.error().message));
    measure_the_outrun(outcome);
    build_and_measure(outcome, conversions);  // Those behind it that had no turn yet.
    if (shop_.stopped()) return Error{Code::kCancelled, "the tune was ended"};
  }
}

// Whoever left the race early left it to one that has given way since: the few rounds it
// had are too few for a verdict.
void Tuner::measure_the_outrun(GraphOutcome& outcome) {
  if (one_by_one(strategy_.name)) return;
  bool any = false;
  for (Contestant& contestant : outcome.contestants) {
    any |= contestant.in_the_race() && contestant.outrun;
    contestant.outrun = false;
  }
  if (!any) return;
  if (shop_.time_is_spent()) {
    shop_.cut_short = true;
    return;
  }
  measure(shop_, outcome.original, outcome.contestants, contest_options(outcome.original));
}

ContestOptions Tuner::contest_options(const Original& original) const {
  const std::vector<int64_t>& given = shop_.options.batch_sizes;
  return {.batch_sizes = sizes_in_range(
              original, sizes_to_measure(strategy_, given, original.graph.has_batch_axis())),
          .stop_when_flat = given.empty(),
          .original_takes_part = strategy_.performance_validation};
}

void Tuner::write_down(const GraphOutcome& outcome, bool settled) {
  const Original& original = outcome.original;
  GraphRecord graph;
  graph.name = original.graph.name;
  graph.inputs = describe(original.graph.inputs);
  graph.outputs = describe(original.graph.outputs);
  const std::optional<size_t> won = settled ? outcome.choice.trial : std::nullopt;
  graph.tolerances = describe_tolerances(original, won && outcome.contestants[*won].lossy);
  graph.baseline = original.trial;
  graph.trials = trials_of(outcome.contestants);
  if (settled) {
    const Choice& choice = outcome.choice;
    WinnerRecord winner;
    winner.graph = graph.name;
    winner.candidate =
        choice.trial ? graph.trials[*choice.trial].candidate : original.trial.candidate;
    winner.selected_batch_size = choice.selected_batch_size;
    winner.throughput = choice.throughput;
    winner.latency_ms = choice.latency_ms;
    winner.speedup = choice.speedup;
    winner.fell_back = choice.fell_back;
    winner.passed = choice.passed;
    winner.why = choice.why;
    winner.doubt = choice.doubt;
    graph.winner = std::move(winner);
  }
  const auto known = std::find_if(record_.graphs.begin(), record_.graphs.end(),
                                  [&](const GraphRecord& g) { return g.name == graph.name; });
  if (known == record_.graphs.end())
    record_.graphs.push_back(std::move(graph));
  else
    *known = std::move(graph);
  // A report that cannot be written now is told at the end; it must not end the work. A pipe
  // gets one report, the last.
  if (is_replaceable(shop_.options.json)) (void)publish();
}

Status Tuner::publish() const {
  if (shop_.options.json.empty()) return {};
  return write_file_atomically(shop_.options.json, record_.to_json().dump(2) + "\n");
}

Status Tuner::tune_graph(PreparedGraph prepared, GraphOutcome& outcome) {
  HASTEN_TRY(const Scouted* backend, baseline_backend(scouted_, model_.format));
  HASTEN_TRY(outcome.original,
             study_original(shop_, model_, *backend, std::move(prepared), signature_));
  const Original& original = outcome.original;
  for (const std::string& warning : original.warnings) {
    record_.warnings.push_back(warning);
    shop_.warn(warning);
  }
  const std::filesystem::path samples =
      shop_.folder / format("graph-{}-samples", original.graph.name);
  HASTEN_TRY_STATUS(write_samples(samples, original));
  Conversions conversions(shop_, compilers_, model_, original.graph,
                          samples);
  outcome.contestants = line_up(shop_.options, scouted_, conversions, original);
  write_down(outcome, false);
  build_and_measure(outcome, conversions);
  if (shop_.stopped()) {
    write_down(outcome, false);
    const bool kept = shop_.journal.has_value();
    return Error{Code::kCancelled,
                 kept ? "the tune was ended; what was finished is in the journal"
                      : "the tune was ended",
                 record_.journal};
  }
  const Status settled = settle(outcome, conversions);
  write_down(outcome, settled.has_value());
  if (!settled) return settled.error();
  // Their memory is wanted by the next graph.
  for (Contestant& contestant : outcome.contestants) contestant.leave();
  shop_.record("choice",
               record_.graphs.back().winner
                   ? Json::object({{"graph", original.graph.name},
                                   {"winner", record_.graphs.back().winner->candidate.label()},
                                   {"why", outcome.choice.why}})
                   : Json::object());
  return {};
}

Status Tuner::save(std::vector<GraphOutcome>& outcomes) {
  if (shop_.options.output.empty()) return {};
  shop_.say("save", shop_.options.output.string());
  record_.artifact = std::filesystem::absolute(shop_.options.output).string();
  const size_t known = record_.warnings.size();
  Status saved = save_artifact(shop_, shop_.options.output, outcomes, record_.environment,
                               record_.to_json(), record_.warnings);
  for (size_t i = known; i < record_.warnings.size(); ++i) shop_.warn(record_.warnings[i]);
  if (!saved) record_.artifact.clear();
  return saved;
}

// Not before the model and the inputs are known to be good: the journal of an earlier tune
// gives way to it.
Status Tuner::begin_journal() {
  if (shop_.options.output.empty()) return {};
  const std::filesystem::path path = journal_path(shop_.options.output);
  HASTEN_TRY(shop_.journal, Journal::create(path));
  record_.journal = path.string();
  return {};
}

Status Tuner::tune_graphs(std::vector<GraphOutcome>& outcomes) {
  HASTEN_TRY_STATUS(look_around());
  InputRequest request;
  request.inputs = shop_.options.inputs;
  request.batch_sizes = shop_.options.batch_sizes;
  request.seed = shop_.options.seed;
  HASTEN_TRY(PreparedInputs prepared, prepare_inputs(request, signature_));
  for (const std::string& warning : prepared.warnings) {
    record_.warnings.push_back(warning);
    shop_.warn(warning);
  }
  HASTEN_TRY_STATUS(begin_journal());
  for (PreparedGraph& graph : prepared.graphs) {
    outcomes.emplace_back();
    HASTEN_TRY_STATUS(tune_graph(std::move(graph), outcomes.back()));
  }
  return {};
}

void Tuner::take_time(std::chrono::nanoseconds begin) {
  const std::chrono::nanoseconds total = shop_.clock.now() - begin;
  record_.total_s = std::chrono::duration<double>(total).count();
  record_.harness_s = std::chrono::duration<double>(total - shop_.work.total()).count();
}

Status Tuner::run() {
  const std::chrono::nanoseconds begin = shop_.clock.now();
  record_.environment = Environment::of_this_machine();
  record_.strategy = to_json(strategy_);
  std::vector<GraphOutcome> outcomes;
  Status status = tune_graphs(outcomes);
  if (const std::optional<std::string> busy = noise_warning(shop_.racing)) {
    record_.warnings.push_back(*busy);
    shop_.warn(*busy);
  }
  if (shop_.cut_short) {
    record_.warnings.push_back(
        "the time limit was reached: the choice rests on what was measured until then; a larger "
        "--max-time lets all be built and measured");
    shop_.warn(record_.warnings.back());
  }
  take_time(begin);  // For the report in the artifact; once more for that beside it.
  if (status) status = save(outcomes);
  take_time(begin);
  if (!status) record_.error = status.error().message;
  if (Status published = publish(); !published && status) return published;
  return status;
}

}  // namespace hasten
