// SPDX-License-Identifier: Apache-2.0
#include "tune/contest.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "measure/race.h"
#include "tune/turns.h"

namespace hasten {
namespace {

using std::chrono::nanoseconds;

// At the first size, whatever the builds took: without any figure they were for nothing.
constexpr nanoseconds kLeastRace = std::chrono::seconds(1);
// Enough for ten rounds of turns that are longer than usual.
constexpr nanoseconds kLeastConfirmation = std::chrono::seconds(3);
// Of one size, for the rounds beyond the least number. Where calls are short against a turn, a
// field of ten plays all its rounds in less.
constexpr nanoseconds kEnoughTime = std::chrono::seconds(15);

Arm arm_for(Workshop& shop, Worker& worker, std::string label, bool fresh_inputs, bool keep) {
  return arm_of(worker, std::move(label),
                {.fresh_inputs = fresh_inputs, .keep = keep, .timeout = shop.options.run_timeout});
}

// Of which every turn is measured.
Arm measured(Workshop& shop, Arm arm) {
  arm.turn = [&shop, turn = std::move(arm.turn)](nanoseconds budget) {
    const UnionTimer::Scope work = shop.work.piece();
    return turn(budget);
  };
  return arm;
}

Result<Worker> loaded_anew(Workshop& shop, const Contestant& contestant,
                           const std::filesystem::path& folder) {
  HASTEN_TRY_STATUS(make_folder(folder));
  const UnionTimer::Scope work = shop.work.piece();
  HASTEN_TRY(Worker worker,
             Worker::start(shop.spawner, worker_options(shop, contestant.backend->entry, folder)));
  HASTEN_TRY_STATUS(worker.load(contestant.payload, shop.options.build_timeout));
  return worker;
}

// A contestant's worker: its own, or for a parked one a new one for as long as the visit.
struct Visit {
  std::unique_ptr<Worker> own;
  Worker* worker = nullptr;
};

Result<Visit> visit(Workshop& shop, Contestant& contestant) {
  Visit visit;
  if (contestant.parked) {
    HASTEN_TRY(Worker worker,
               loaded_anew(shop, contestant, contestant.payload.parent_path() / "visit"));
    visit.own = std::make_unique<Worker>(std::move(worker));
  }
  visit.worker = visit.own ? visit.own.get() : &*contestant.worker;
  return visit;
}

// Takes each of its turns in a new child that has warmed up.
Arm parked_arm(Workshop& shop, Contestant& contestant, const std::vector<Tensor>& inputs,
               bool fresh_inputs) {
  return {.label = contestant.trial.candidate.label(),
          .turn = [&shop, &contestant, &inputs,
                   fresh_inputs](nanoseconds budget) -> Result<std::vector<int64_t>> {
            HASTEN_TRY(const Visit visited, visit(shop, contestant));
            HASTEN_TRY_STATUS(
                visited.worker->set_inputs(kMeasuredSlot, inputs, shop.options.run_timeout));
            const Arm arm = arm_for(shop, *visited.worker, "", fresh_inputs, false);
            HASTEN_TRY_STATUS(warm_up(arm));
            return arm.turn(budget);
          },
          .keep = false};
}

struct Entrant {
  Contestant* contestant;  // Null: the baseline.
  Arm arm;
  std::optional<nanoseconds> answered{};  // How long a call with these inputs took just now.
};

// Checks the size, warms up, and lets in whoever is right. The original is at hand.
std::vector<Entrant> let_in(Workshop& shop, Original& original, std::span<Contestant> contestants,
                            const CheckCase& reference) {
  std::vector<Entrant> entrants;
  const int64_t batch_size = *reference.batch_size;
  const bool fresh = original.writes_inputs();
  entrants.push_back(
      {nullptr, arm_for(shop, *original.worker, original.trial.candidate.label(), fresh, true),
       reference.duration});
  for (Contestant& contestant : contestants) {
    if (!contestant.in_the_race()) continue;
    if (contestant.end && batch_size >= contestant.end->batch_size) continue;
    if (!contestant.covers(original.graph, reference.inputs)) continue;
    Result<Visit> visited = visit(shop, contestant);
    if (!visited) {
      contestant.break_at(batch_size, std::move(visited).error());
      continue;
    }
    Worker& worker = *visited->worker;
    Result<CaseAnswer> answer =
        answer_case(worker, original, reference, shop.options, contestant.lossy);
    if (!answer) {
      contestant.break_at(batch_size, std::move(answer).error().within(reference.reference.what));
      continue;
    }
    contestant.trial.check = merge(std::vector{*contestant.trial.check, answer->record});
    if (!answer->record.passed) {
      contestant.fail(Stage::kMeasure, wrong_result(answer->record), TrialStatus::kRejected);
      continue;
    }
    if (contestant.parked) {
      entrants.push_back({&contestant, parked_arm(shop, contestant, reference.inputs, fresh)});
      continue;
    }
    if (Status set = worker.set_inputs(kMeasuredSlot, reference.inputs, shop.options.run_timeout);
        !set) {
      contestant.break_at(batch_size, std::move(set).error());
      continue;
    }
    worker.stop();
    entrants.push_back({&contestant,
                        arm_for(shop, worker, contestant.trial.candidate.label(), fresh, false),
                        answer->duration});
  }
  std::erase_if(entrants, [&](Entrant& entrant) {
    if (entrant.contestant && entrant.contestant->parked) return false;
    Status warm = warm_up(entrant.arm, entrant.answered);
    if (warm || !entrant.contestant) return false;  // The race will tell of the original.
    entrant.contestant->break_at(batch_size, std::move(warm).error());
    return true;
  });
  return entrants;
}

// The original's own answer at a size: what the others are held against.
Result<CheckCase> reference_at(Workshop& shop, Original& original, int64_t batch_size) {
  CheckCase reference;
  reference.batch_size = batch_size;
  reference.inputs = original.inputs_at(batch_size);
  reference.reference.what = format("batch {} (measured)", batch_size);
  HASTEN_TRY(Worker * worker, at_hand(shop, original));
  HASTEN_TRY_STATUS(worker->set_inputs(kMeasuredSlot, reference.inputs, shop.options.run_timeout));
  HASTEN_TRY(CallResult call, worker->run(kMeasuredSlot, shop.options.run_timeout));
  worker->stop();
  reference.duration = call.duration;
  reference.reference.outputs = std::move(call.outputs);
  return reference;
}

RaceOptions race_options(const Workshop& shop, const ContestOptions& options, int64_t batch_size) {
  RaceOptions race;
  race.turn = kTurnLength;
  race.min_rounds = options.min_rounds;
  race.max_rounds = options.max_rounds;
  race.enough_time = kEnoughTime;
  race.kept_arms_lead = options.original_takes_part;
  race.confidence = kRaceConfidence;
  race.indifference = kIndifference;
  race.seed = shop.options.seed + static_cast<uint64_t>(batch_size);
  race.stop = shop.options.stop;
  if (shop.deadline) {
    const bool first = batch_size == options.batch_sizes.front();
    race.max_time =
        std::max(first ? kLeastRace : nanoseconds(0), *shop.deadline - shop.clock.now());
  }
  return race;
}

// Adds what the machine did meanwhile to the sum over all races.
RaceResult watched_race(Workshop& shop, std::span<const Arm> arms, const RaceOptions& options,
                        const ActivityProbe& activity,
                        const std::function<void(const RaceResult&)>& after_round = {}) {
  const ActivityReading before = activity();
  RaceResult race = run_race(arms, options, shop.clock, after_round);
  add_stretch(shop.racing, before, activity());
  return race;
}

std::string note_of(const ArmSamples& arm, const std::optional<SweepEnd>& end) {
  std::vector<std::string> notes;
  if (arm.dropped) notes.push_back("left the race early: more than twice as slow as the best");
  if (end) notes.push_back(end->describe());
  return join(notes, "; ");
}

// A strategy that goes one by one measures the original again each time.
void set_point(Trial& trial, const Point& point) {
  for (Point& known : trial.points) {
    if (known.batch_size != point.batch_size) continue;
    known = point;
    return;
  }
  trial.points.push_back(point);
}

// The original is not asked again from this size on, unless it is the first: then it may be
// for want of luck, and the next candidate has nobody else to be compared with.
void original_breaks(Workshop& shop, Original& original, int64_t batch_size, const Error& error) {
  if (shop.stopped()) return;
  const bool measured_below =
      std::any_of(original.trial.points.begin(), original.trial.points.end(),
                  [&](const Point& p) { return p.batch_size < batch_size; });
  const SweepEnd end{batch_size, error.message};
  if (measured_below) original.end = end;
  original.trial.note = end.describe();
  shop.warn(format("the original fails at batch {}, so larger sizes are not measured: {}",
                   batch_size, error.message));
}

// One size. Returns the best throughput of all; none when the original failed.
std::optional<double> measure_size(Workshop& shop, Original& original,
                                   std::span<Contestant> contestants, int64_t batch_size,
                                   const ContestOptions& options) {
  const Result<CheckCase> reference = reference_at(shop, original, batch_size);
  if (!reference) {
    original_breaks(shop, original, batch_size, reference.error());
    return std::nullopt;
  }
  std::vector<Entrant> entrants = let_in(shop, original, contestants, *reference);
  std::vector<Arm> arms;
  std::vector<int> workers;
  for (const Entrant& entrant : entrants) {
    arms.push_back(measured(shop, entrant.arm));
    const std::optional<Worker>& worker =
        entrant.contestant ? entrant.contestant->worker : original.worker;
    if (worker) workers.push_back(worker->pid());
  }
  const ActivityProbe activity = activity_probe(workers);
  RaceOptions race_with = race_options(shop, options, batch_size);
  // The children of parked ones come and go: their loading is a disturbance of no round.
  if (workers.size() == arms.size()) race_with.activity = activity;
  const RaceResult race =
      watched_race(shop, arms, race_with, activity, [&](const RaceResult& so_far) {
        shop.say({.kind = TuneEvent::Kind::kProgress,
                  .stage = "measure",
                  .candidate = {},
                  .text = format("batch {}: round {} of at most {}, {} candidates", batch_size,
                                 so_far.rounds, options.max_rounds, arms.size() - 1)});
      });
  if (race.reason == StopReason::kTimeSpent && shop.time_is_spent()) shop.cut_short = true;
  shop.record("samples", samples_json(race, batch_size, "measure"));
  const std::optional<int64_t> fastest = original.fastest_call(batch_size, race.arms.front());
  double best = 0;
  for (size_t i = 0; i < entrants.size(); ++i) {
    Contestant* contestant = entrants[i].contestant;
    if (contestant && race.arms[i].failure) {
      contestant->break_at(batch_size, *race.arms[i].failure);
      continue;
    }
    const std::optional<Point> point = point_of(race.arms[i], &race.arms[0], batch_size, fastest);
    if (!point) continue;
    Trial& trial = contestant ? contestant->trial : original.trial;
    set_point(trial, *point);
    trial.status = TrialStatus::kOk;
    std::optional<Worker>& worker = contestant ? contestant->worker : original.worker;
    if (worker) {
      if (const Result<uint64_t> peak = worker->peak_memory_bytes())
        trial.peak_memory_bytes = *peak;
      worker->stop();
    }
    if (contestant) contestant->outrun |= race.arms[i].dropped;
    trial.note = note_of(race.arms[i], contestant ? contestant->end : original.end);
    best = std::max(best, point->throughput);
  }
  if (const std::optional<Error>& failure = race.arms.front().failure) {
    original_breaks(shop, original, batch_size, *failure);
    return std::nullopt;
  }
  shop.say("measure", format("batch {}: {}; best {:.1f} rows/s", batch_size, describe(race), best));
  return best;
}

Status answers_rightly(const Workshop& shop, const Original& original, const Contestant& contestant,
                       Worker& candidate, const CheckCase& one, std::string_view when) {
  HASTEN_TRY(const CaseAnswer answer,
             answer_case(candidate, original, one, shop.options, contestant.lossy));
  if (answer.record.passed) return {};
  return std::move(wrong_result(answer.record)).within(when);
}

}  // namespace

void measure(Workshop& shop, Original& original, std::span<Contestant> contestants,
             const ContestOptions& options) {
  const bool anybody_new =
      original.trial.points.empty() ||
      std::any_of(contestants.begin(), contestants.end(),
                  [](const Contestant& c) { return c.in_the_race() && c.trial.points.empty(); });
  SweepIsFlat flat;
  for (const int64_t batch_size : options.batch_sizes) {
    if (shop.stopped()) return;
    if (original.end && batch_size >= original.end->batch_size) return;
    const bool has_to_be = anybody_new && batch_size == options.batch_sizes.front();
    if (shop.time_is_spent() && !has_to_be) {
      shop.cut_short = true;
      return;
    }
    const std::optional<double> best =
        measure_size(shop, original, contestants, batch_size, options);
    if (!best) return;
    if (options.stop_when_flat && flat.done(*best)) return;
  }
}

Result<Point> confirm(Workshop& shop, Original& original, const Contestant& contestant,
                      int64_t batch_size, const std::filesystem::path& folder) {
  HASTEN_TRY(Worker baseline,
             build_original(shop, original, original.trial.candidate, folder / "original"));
  HASTEN_TRY(Worker candidate, loaded_anew(shop, contestant, folder / "candidate"));
  for (const CheckCase& one : original.cases) {
    if (!contestant.covers(original.graph, one.inputs)) continue;
    HASTEN_TRY_STATUS(
        answers_rightly(shop, original, contestant, candidate, one, "saved and loaded again"));
  }
  const std::vector<Tensor> inputs = original.inputs_at(batch_size);
  HASTEN_TRY_STATUS(baseline.set_inputs(kMeasuredSlot, inputs, shop.options.run_timeout));
  HASTEN_TRY_STATUS(candidate.set_inputs(kMeasuredSlot, inputs, shop.options.run_timeout));
  baseline.stop();
  candidate.stop();
  const bool fresh = original.writes_inputs();
  std::vector<Arm> arms = {
      arm_for(shop, baseline, original.trial.candidate.label(), fresh, true),
      arm_for(shop, candidate, contestant.trial.candidate.label(), fresh, true)};
  for (Arm& arm : arms) {
    // The race will tell of the original.
    if (Status warm = warm_up(arm); !warm && &arm != &arms.front()) return std::move(warm).error();
    arm = measured(shop, std::move(arm));
  }
  const ContestOptions options{.batch_sizes = {batch_size}, .min_rounds = 10, .max_rounds = 40};
  RaceOptions race_with = race_options(shop, options, batch_size);
  race_with.activity = activity_probe({baseline.pid(), candidate.pid()});
  // Whatever the rest took: without its confirmation all of it would be for nothing.
  if (race_with.max_time) race_with.max_time = std::max(*race_with.max_time, kLeastConfirmation);
  const RaceResult race = watched_race(shop, arms, race_with, race_with.activity);
  shop.record("samples", samples_json(race, batch_size, "confirm"));
  const ArmSamples &own = race.arms[1], &theirs = race.arms[0];
  if (own.failure) return *own.failure;
  if (theirs.failure) {
    shop.warn(format("the original fails at batch {} beside the winner: {}", batch_size,
                     theirs.failure->message));
  }
  // An original that was never measured is nobody to be faster than.
  const bool compared = !original.trial.points.empty();
  const std::optional<Point> point = point_of(own, compared ? &theirs : nullptr, batch_size,
                                              original.fastest_call(batch_size, theirs));
  if (!point) return Error{Code::kTimedOut, "there was no time left to measure it again"};
  // After thousands of calls the answers are still those of the first.
  if (const CheckCase* first = contestant.first_case(original)) {
    HASTEN_TRY_STATUS(
        answers_rightly(shop, original, contestant, candidate, *first, "after the race"));
  }
  return *point;
}

}  // namespace hasten
