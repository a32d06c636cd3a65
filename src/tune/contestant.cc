// SPDX-License-Identifier: Apache-2.0
#include "tune/contestant.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "check/metamorphic.h"
#include "tune/parallel.h"
#include "tune/row_rules.h"
#include "tune/slots.h"

namespace hasten {
namespace {

double to_ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

uint64_t folder_size(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    const uint64_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

// A file descriptor's name for a candidate: labels hold characters that files must not.
std::string folder_name(const GraphSpec& graph, size_t number) {
  return format("graph-{}-candidate-{}", graph.name, number);
}

Status convert(Conversions& conversions, Contestant& contestant, Converted& converted) {
  const Scouted& backend = *contestant.backend;
  HASTEN_TRY(const std::string to, conversions.reachable(backend.formats()));
  HASTEN_TRY(converted, conversions.get(to, backend.compile_options(contestant.trial.candidate)));
  contestant.ranges = converted.ranges;
  contestant.machine_specific = converted.machine_specific;
  contestant.trial.build_s += converted.seconds;
  return {};
}

Status build(Workshop& shop, const Original& original, Contestant& contestant,
             const Converted& converted, const std::filesystem::path& folder) {
  HASTEN_TRY_STATUS(make_folder(folder / "scratch"));
  contestant.payload = folder / "payload";
  HASTEN_TRY_STATUS(make_folder(contestant.payload));
  const UnionTimer::Scope work = shop.work.piece();
  const std::chrono::nanoseconds begin = shop.clock.now();
  WorkerOptions options = worker_options(shop, contestant.backend->entry, folder / "scratch");
  HASTEN_TRY(contestant.worker, Worker::start(shop.spawner, std::move(options)));
  HASTEN_TRY_STATUS(contestant.worker->build(
      converted.path, converted.format, original.graph.to_json(),
      contestant.backend->without_compile_options(contestant.trial.candidate),
      shop.build_timeout()));
  contestant.trial.build_s += std::chrono::duration<double>(shop.clock.now() - begin).count();
  if (Status saved = contestant.worker->save(contestant.payload, shop.build_timeout()); !saved) {
    return std::move(saved).error().within("saving the build");
  }
  contestant.trial.artifact_bytes = folder_size(contestant.payload);
  return {};
}

SideEffects effects_of(const CallAudit& audit) {
  return {.written_inputs = audit.written_inputs,
          .aliases = audit.aliases,
          .first_result_changed = audit.first_result_changed};
}

// What calls do besides answering, held against what those of the original do.
CheckRecord judge_audit(const CallAudit& own, const Original& original) {
  std::vector<std::string> inputs;
  for (const TensorSpec& input : original.graph.inputs) inputs.push_back(input.name);
  return check_side_effects(effects_of(own), effects_of(original.audit), inputs,
                            original.output_names);
}

Status check(Workshop& shop, const Original& original, Contestant& contestant) {
  std::vector<CheckRecord> records;
  for (const CheckCase& one : original.cases) {
    if (!contestant.covers(original.graph, one.inputs)) continue;
    Result<CaseAnswer> answer =
        answer_case(*contestant.worker, original, one, shop.options, contestant.lossy);
    if (!answer) return std::move(answer).error().within(one.reference.what);
    if (records.empty()) contestant.trial.first_call_ms = to_ms(answer->duration);
    records.push_back(std::move(answer->record));
    if (!records.back().passed) break;
  }
  contestant.trial.check = merge(records);
  if (records.empty() || !contestant.trial.check->passed) return {};

  Worker& worker = *contestant.worker;
  const CheckCase& first = *contestant.first_case(original);
  Result<CallAudit> audit = audit_calls(worker, original, first, shop.run_timeout());
  if (!audit) return std::move(audit).error().within(first.reference.what + ", other values");
  records.push_back(judge_audit(*audit, original));
  if (records.back().passed) {
    // The same call a second time: a build may answer rightly once and differently after
    // it has specialised itself.
    Result<CaseAnswer> again = answer_case(worker, original, first, shop.options, contestant.lossy);
    if (!again) return std::move(again).error().within(first.reference.what + ", again");
    if (!again->record.passed) again->record.rule = "repeat";
    records.push_back(std::move(again->record));
  }
  if (records.back().passed) {
    Result<CheckRecord> rows = check_row_rules(shop, original, contestant);
    if (!rows) {
      return std::move(rows).error().within(format("a batch of {}", original.row_rules.rows));
    }
    records.push_back(*std::move(rows));
  }
  if (records.back().passed) return {};
  records.back().checked.clear();  // The calls that agreed are listed, not the rules.
  contestant.trial.check = merge(records);
  return {};
}

void build_and_check_one(Workshop& shop, Conversions& conversions, const Original& original,
                         Contestant& contestant, const std::filesystem::path& folder) {
  const std::string label = contestant.trial.candidate.label();
  const auto say = [&](const std::string& stage, const std::string& text) {
    shop.say(
        {.kind = TuneEvent::Kind::kCandidate, .stage = stage, .candidate = label, .text = text});
  };
  if (contestant.trial.failure) return;  // Unavailable, or no way to its format.
  if (shop.stopped()) {
    contestant.trial.note = "not built: the tune was ended";
    return;
  }
  if (shop.build_time_is_spent()) {
    shop.cut_short = true;
    contestant.trial.note = "not built: the time limit was reached; give a larger --max-time";
    return;
  }
  // Out of our time is no fault of the candidate's.
  const auto fail = [&](Stage stage, Error error) {
    const bool ours = error.code == Code::kCancelled ||
                      (error.code == Code::kTimedOut && shop.build_time_is_spent());
    shop.cut_short = shop.cut_short || (ours && !shop.stopped());
    contestant.fail(stage, std::move(error), ours ? TrialStatus::kDropped : TrialStatus::kFailed);
    say(std::string(to_string(stage)), "failed: " + contestant.trial.failure->error.message);
  };
  Converted converted;
  if (Status done = convert(conversions, contestant, converted); !done) {
    return fail(Stage::kConvert, std::move(done).error());
  }
  if (Status done = build(shop, original, contestant, converted, folder); !done) {
    return fail(Stage::kBuild, std::move(done).error());
  }
  say("build", format("built in {:.1f} s", contestant.trial.build_s));
  if (Status done = check(shop, original, contestant); !done) {
    return fail(Stage::kCheck, std::move(done).error());
  }
  if (!contestant.trial.check || contestant.trial.check->checked.empty()) {
    return fail(Stage::kCheck, {Code::kUnsupported, "it takes none of the sizes to check"});
  }
  if (!contestant.trial.check->passed) {
    contestant.fail(Stage::kCheck, wrong_result(*contestant.trial.check), TrialStatus::kRejected);
    return say("check", "rejected: " + contestant.trial.failure->error.message);
  }
  say("check", format("agrees on {} calls", contestant.trial.check->checked.size()));
  if (Result<uint64_t> peak = contestant.worker->peak_memory_bytes()) {
    contestant.trial.peak_memory_bytes = *peak;
  }
  contestant.trial.note = "correct; not measured";
  if (std::optional<Reservation> room =
          shop.room_for(contestant.trial.peak_memory_bytes.value_or(0))) {
    contestant.waiting = std::move(*room);
    contestant.worker->stop();
    return;
  }
  contestant.park();
  say("build", "waits on disk: the others fill the memory for waiting candidates");
}

// One of each kind of conversion first, so that the long ones begin at once and
// nobody waits for somebody else's while there is other work.
std::vector<size_t> work_order(std::span<const Contestant> contestants) {
  std::vector<size_t> order(contestants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::set<std::string> seen;
  std::vector<int> rank(contestants.size());
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& c = contestants[i];
    std::string key = c.backend->describe["formats"].dump();
    for (const auto& [name, value] : c.backend->compile_options(c.trial.candidate)) {
      key += name + "=" + value;
    }
    rank[i] = seen.insert(key).second ? 0 : 1;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank[a] < rank[b]; });
  return order;
}

Code failure_of(Stage stage) {
  const bool runs = stage == Stage::kCheck || stage == Stage::kMeasure;
  return runs ? Code::kRunFailed : Code::kBuildFailed;
}

std::string remedy_for(Code code, const std::string& repeat_command) {
  switch (code) {
    case Code::kTimedOut:
      return "--build-timeout and --run-timeout set the limits";
    case Code::kOutOfMemory:
      return "--memory-limit sets the limit of one candidate";
    case Code::kCrashed:
      return "this repeats it alone: " + repeat_command;
    default:
      return "";
  }
}

}  // namespace

void Contestant::fail(Stage stage, Error error, TrialStatus status) {
  // An exception that a plugin did not foresee is the candidate's failure, no bug of ours.
  if (error.code == Code::kInternal) error.code = failure_of(stage);
  if (error.hint.empty()) error.hint = remedy_for(error.code, trial.repeat_command);
  trial.status = status;
  trial.failure = Failure{stage, std::move(error)};
  trial.note.clear();
  leave();
}

void Contestant::give_way(std::string why) {
  trial.status = TrialStatus::kDropped;
  trial.points.clear();
  trial.note = std::move(why);
  leave();
}

void Contestant::break_at(int64_t batch_size, Error error) {
  const bool limit = error.code == Code::kOutOfMemory || error.code == Code::kTimedOut ||
                     error.code == Code::kCrashed;
  std::erase_if(trial.points, [&](const Point& p) { return p.batch_size >= batch_size; });
  if (!limit || trial.points.empty()) return fail(Stage::kMeasure, std::move(error));
  end = SweepEnd{batch_size, std::move(error.message)};
  trial.note = end->describe();
  park();
}

void Contestant::park() {
  if (worker) worker->shut_down();
  leave();
  parked = true;
}

void Contestant::leave() {
  worker.reset();
  waiting = {};
  parked = false;
}

const CheckCase* Contestant::first_case(const Original& original) const {
  for (const CheckCase& one : original.cases) {
    if (covers(original.graph, one.inputs)) return &one;
  }
  return nullptr;
}

bool Contestant::covers(const GraphSpec& graph, std::span<const Tensor> inputs) const {
  for (size_t k = 0; k < graph.inputs.size() && k < inputs.size(); ++k) {
    const std::vector<Axis>& axes = graph.inputs[k].axes;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto range = ranges.find(axes[i].symbol);
      if (axes[i].kind == AxisKind::kStatic || range == ranges.end()) continue;
      const int64_t size = inputs[k].shape()[i] / std::max<int64_t>(1, axes[i].multiplier);
      if (size < range->second.first || size > range->second.second) return false;
    }
  }
  return true;
}

WorkerOptions worker_options(const Workshop& shop, const BackendEntry& backend,
                             const std::filesystem::path& folder) {
  WorkerOptions options;
  options.backend = backend;
  options.work_dir = folder;
  options.threads = shop.threads;
  options.memory_limit_bytes = shop.memory_limit_bytes;
  options.start_timeout = shop.in_study(options.start_timeout);
  options.stop = shop.options.stop;
  return options;
}

Error wrong_result(const CheckRecord& record) {
  return {Code::kWrongResult,
          record.message.empty() ? format("it broke the rule '{}'", record.rule) : record.message,
          record.rule == "values" || record.rule == "repeat"
              ? "--atol and --rtol set the tolerance; the report names the worst element"
              : ""};
}

Result<CaseAnswer> answer_case(Worker& worker, const Original& original, const CheckCase& one,
                               const TuneOptions& options, bool lossy) {
  HASTEN_TRY_STATUS(worker.set_inputs(kCheckSlot, one.inputs, options.run_timeout));
  HASTEN_TRY(CallResult call, worker.run(kCheckSlot, options.run_timeout));
  return CaseAnswer{.record = check_outputs(call.outputs, one.reference,
                                            original.tolerances_for(lossy), original.output_names),
                    .duration = call.duration};
}

void build_and_check(Workshop& shop, Conversions& conversions, const Original& original,
                     std::span<Contestant> contestants) {
  const std::vector<size_t> order = work_order(contestants);
  // One more than there are processors: a build waits for the disk and the loader as well, and
  // the others are checked meanwhile.
  const auto at_once = static_cast<size_t>(shop.threads) + 1;
  for_each_in_parallel(order.size(), at_once, [&](size_t i) {
    Contestant& contestant = contestants[order[i]];
    try {
      build_and_check_one(shop, conversions, original, contestant,
                          shop.folder / folder_name(original.graph, order[i]));
    } catch (const std::exception& thrown) {
      // Out of memory for its answers, say: the others are not to pay for it.
      contestant.fail(Stage::kCheck, {Code::kInternal, thrown.what()});
    }
    shop.record("trial", contestant.trial.to_json());
  });
}

}  // namespace hasten
