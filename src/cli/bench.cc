// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "measure/race.h"
#include "report/figures.h"
#include "tensor/difference.h"
#include "tune/inputs.h"
#include "tune/runnable.h"
#include "tune/specs.h"
#include "tune/turns.h"

namespace hasten {
namespace {

constexpr std::chrono::nanoseconds kCallTimeout = std::chrono::minutes(10);

struct Side {
  std::string name;  // The file's; the path where both have the same.
  Runnable runnable;
};

// Inputs, and how to bring them to another batch size.
struct BenchInputs {
  GraphSpec graph;
  std::vector<Tensor> sample;
  int64_t recorded_batch = 1;
};

Result<BenchInputs> given_inputs(const BenchCommand& command, const Signature& signature) {
  InputRequest request;
  request.inputs = command.inputs;
  request.batch_sizes = command.batch_sizes;
  request.seed = command.seed;
  HASTEN_TRY(PreparedInputs prepared, prepare_inputs(request, signature));
  PreparedGraph& first = prepared.graphs.front();
  BenchInputs inputs{.graph = std::move(first.spec), .sample = {}};
  inputs.sample = std::move(first.samples.front().inputs);
  inputs.recorded_batch = inputs.graph.batch_of(inputs.sample).value_or(1);
  return inputs;
}

// The user's inputs, else those that one of the artifacts carries, else random ones.
Result<BenchInputs> inputs_for(const BenchCommand& command, std::vector<Side>& sides) {
  if (!command.inputs.empty()) return given_inputs(command, sides.front().runnable.signature);
  for (Side& side : sides) {
    if (!side.runnable.graph) continue;
    const auto proof = std::ranges::find(side.runnable.proofs, side.runnable.graph->name,
                                         &ProofSample::graph);
    if (proof == side.runnable.proofs.end()) continue;
    BenchInputs inputs{.graph = *side.runnable.graph, .sample = std::move(proof->inputs)};
    inputs.recorded_batch = inputs.graph.batch_of(inputs.sample).value_or(1);
    return inputs;
  }
  return given_inputs(command, sides.front().runnable.signature);
}

std::vector<int64_t> sizes_for(const BenchCommand& command, const std::vector<Side>& sides,
                               const BenchInputs& inputs) {
  if (!inputs.graph.has_batch_axis()) return {1};
  if (!command.batch_sizes.empty()) return command.batch_sizes;
  for (const Side& side : sides) {
    if (side.runnable.graph) return {side.runnable.chosen_batch_size};
  }
  return {inputs.recorded_batch};
}

struct Measured {
  std::vector<Point> points;                 // One a side.
  size_t discarded = 0;                      // Rounds that other programs disturbed.
  std::optional<double> largest_difference;  // Between the answers of the two.
};

Result<std::optional<double>> differ(const std::vector<std::vector<Tensor>>& answers) {
  if (answers.size() < 2) return std::optional<double>();
  if (answers[0].size() != answers[1].size()) {
    return Error{Code::kWrongResult,
                 format("the two give {} and {} outputs", answers[0].size(), answers[1].size())};
  }
  double largest = 0;
  for (size_t i = 0; i < answers[0].size(); ++i) {
    const Difference d = compare(answers[0][i], answers[1][i], {});
    if (!d.mismatch.empty()) {
      return Error{Code::kWrongResult, format("output {} of the two: {}", i, d.mismatch)};
    }
    largest = std::max(largest, d.largest_absolute);
  }
  return std::optional<double>(largest);
}

Result<Measured> measure_size(const BenchCommand& command, std::vector<Side>& sides,
                              const BenchInputs& inputs, int64_t batch_size, std::stop_token stop,
                              ProgressPrinter& progress) {
  if (inputs.graph.has_batch_axis()) {
    const double bytes = bytes_of_batch(inputs.graph, inputs.sample, batch_size);
    HASTEN_TRY_STATUS(check_room(format("B = {}", batch_size), bytes, input_limit_bytes()));
  }
  const std::vector<Tensor> tensors = inputs.graph.has_batch_axis()
                                          ? make_batch(inputs.graph, inputs.sample, batch_size)
                                          : make_batch(inputs.graph, inputs.sample, 1);
  Measured measured;
  std::vector<Arm> arms;
  std::vector<int> workers;
  std::vector<std::vector<Tensor>> answers;
  for (Side& side : sides) {
    Worker& worker = side.runnable.worker;
    HASTEN_TRY_STATUS(worker.set_inputs(kMeasuredSlot, tensors, kCallTimeout));
    HASTEN_TRY(CallResult call, worker.run(kMeasuredSlot, kCallTimeout));
    answers.push_back(std::move(call.outputs));
    worker.stop();
    arms.push_back(arm_of(worker, side.name, {.keep = true, .timeout = kCallTimeout}));
    workers.push_back(worker.pid());
  }
  HASTEN_TRY(measured.largest_difference, differ(answers));
  for (const Arm& arm : arms) HASTEN_TRY_STATUS(warm_up(arm));
  RaceOptions options;
  options.turn = kTurnLength;
  options.max_rounds = command.rounds;
  options.min_rounds = std::min<size_t>(options.max_rounds, 10);
  options.confidence = kRaceConfidence;
  options.indifference = kIndifference;
  options.activity = activity_probe(std::move(workers));
  options.seed = command.seed;
  options.stop = stop;
  const RaceResult race = run_race(arms, options, real_clock(), [&](const RaceResult& so_far) {
    progress.show({.kind = TuneEvent::Kind::kProgress,
                   .stage = "measure",
                   .candidate = {},
                   .text = format("batch {}: round {} of at most {}", batch_size, so_far.rounds,
                                  options.max_rounds)});
  });
  if (race.reason == StopReason::kCancelled) return Error{Code::kCancelled, "interrupted"};
  measured.discarded = race.discarded;
  // The second side is what the first is compared with.
  const ArmSamples* baseline = race.arms.size() > 1 ? &race.arms[1] : nullptr;
  for (const ArmSamples& arm : race.arms) {
    if (arm.failure) return Error(*arm.failure).within(arm.label);
    const std::optional<Point> point = point_of(arm, baseline, batch_size);
    if (!point) return Error{Code::kRunFailed, arm.label + " never finished a turn"};
    measured.points.push_back(*point);
  }
  return measured;
}

Json to_json(const Point& point, const Side& side) {
  Json json = Json::object({{"target", side.name}, {"backend", side.runnable.label}});
  json.set("throughput", point.throughput);
  json.set("latency_ms", to_json(point.latency_ms, "median"));
  json.set("calls", static_cast<int64_t>(point.calls));
  json.set("rounds", static_cast<int64_t>(point.rounds));
  return json;
}

Json to_json(const Measured& measured, const std::vector<Side>& sides, int64_t batch_size) {
  Json targets = Json::array();
  for (size_t i = 0; i < sides.size(); ++i) targets.push(to_json(measured.points[i], sides[i]));
  Json json = Json::object({{"batch_size", batch_size},
                            {"targets", std::move(targets)},
                            {"discarded_rounds", static_cast<int64_t>(measured.discarded)}});
  if (sides.size() > 1) {
    const Point& first = measured.points.front();
    json.set("speedup", to_json(*first.speedup));
    json.set("verdict", to_string(first.verdict));
    json.set("doubt", first.doubt.empty() ? Json() : Json(first.doubt));
    json.set("largest_difference", *measured.largest_difference);
  }
  return json;
}

std::string sentence(Verdict verdict, const std::string& one, const std::string& other) {
  switch (verdict) {
    case Verdict::kFaster:
      return format("{} is faster than {}", one, other);
    case Verdict::kSlower:
      return format("{} is slower than {}", one, other);
    case Verdict::kSame:
      return format("{} is as fast as {}", one, other);
    case Verdict::kCannotTell:
      break;
  }
  return format("cannot tell whether {} or {} is faster", one, other);
}

std::string to_text(const Measured& measured, const std::vector<Side>& sides, int64_t batch_size) {
  std::string text;
  for (size_t i = 0; i < sides.size(); ++i) {
    const Point& p = measured.points[i];
    text += format("batch {:<4} {:<28} {:>10.4g} ms  ({:.4g} ... {:.4g})  {:>10.5g} rows/s  {}\n",
                   batch_size, sides[i].name, p.latency_ms.estimate, p.latency_ms.low,
                   p.latency_ms.high, p.throughput, sides[i].runnable.label);
  }
  if (sides.size() > 1) {
    const Point& first = measured.points.front();
    text += format("           {}: {} times as fast; largest difference of the outputs {:.2g}\n",
                   sentence(first.verdict, sides[0].name, sides[1].name),
                   ratio_text(*first.speedup), *measured.largest_difference);
    if (!first.doubt.empty()) text += format("           doubtful: {}\n", first.doubt);
  }
  if (measured.discarded > 0) {
    text += format("           {} that other programs disturbed left out\n",
                   counted(measured.discarded, "round"));
  }
  return text;
}

// The inputs of a model that has to be called to be understood: the user's, or the artifact's.
Result<GraphSpec> graph_of(const BenchCommand& command, const std::vector<Side>& opened,
                           const Signature& signature) {
  for (const Side& side : opened) {
    if (command.inputs.empty() && side.runnable.graph) return *side.runnable.graph;
  }
  HASTEN_TRY(BenchInputs inputs, given_inputs(command, signature));
  return std::move(inputs.graph);
}

Result<std::vector<Side>> open_sides(const BenchCommand& command, Spawner& spawner,
                                     const std::filesystem::path& folder, std::stop_token stop) {
  std::vector<std::filesystem::path> targets = {command.target};
  if (!command.against.empty()) targets.push_back(command.against);
  const bool alike = targets.front().filename() == targets.back().filename();
  std::vector<Side> sides;
  for (const std::filesystem::path& target : targets) {
    const std::filesystem::path scratch = folder / format("{}", sides.size());
    HASTEN_TRY_STATUS(make_folder(scratch));
    const auto known = [&](const Signature& s) { return graph_of(command, sides, s); };
    HASTEN_TRY(Runnable runnable, open_runnable(spawner, target,
                                                {.work_dir = scratch,
                                                 .plugins = command.common.plugins,
                                                 .backend = {},
                                                 .graph_of = known,
                                                 .threads = command.common.threads,
                                                 .stop = stop}));
    for (const std::string& warning : runnable.warnings) print_warning(warning);
    runnable.worker.stop();
    sides.push_back({(alike ? target : target.filename()).string(), std::move(runnable)});
  }
  return sides;
}

}  // namespace

int run_bench(const BenchCommand& command) {
  const InterruptScope interrupt;
  Result<TemporaryFolder> folder = TemporaryFolder::create("bench");
  if (!folder) return fail(folder.error());
  Spawner spawner;
  Result<std::vector<Side>> sides = open_sides(command, spawner, folder->path(), interrupt.token());
  if (!sides) return fail(sides.error());
  const Result<BenchInputs> inputs = inputs_for(command, *sides);
  if (!inputs) return fail(inputs.error());

  ProgressPrinter progress(command.common.quiet);
  Json points = Json::array();
  std::string text;
  for (const int64_t batch_size : sizes_for(command, *sides, *inputs)) {
    const Result<Measured> measured =
        measure_size(command, *sides, *inputs, batch_size, interrupt.token(), progress);
    if (!measured) return fail(measured.error());
    points.push(to_json(*measured, *sides, batch_size));
    text += to_text(*measured, *sides, batch_size);
  }
  progress.done();
  const Json json =
      Json::object({{"schema", 1},
                    {"hasten", kVersion},
                    {"target", command.target.string()},
                    {"against", command.against.empty() ? Json() : Json(command.against.string())},
                    {"points", std::move(points)}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  if (command.common.json != "-") print(text);
  return kExitDone;
}

}  // namespace hasten
