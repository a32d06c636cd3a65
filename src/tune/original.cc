// SPDX-License-Identifier: Apache-2.0
#include "tune/original.h"

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "check/plan.h"
#include "model/recording.h"
#include "tune/contestant.h"
#include "tune/row_rules.h"
#include "tune/slots.h"

namespace hasten {
namespace {

Result<CallResult> call(Worker& worker, std::span<const Tensor> inputs,
                        std::chrono::nanoseconds timeout) {
  HASTEN_TRY_STATUS(worker.set_inputs(kCheckSlot, inputs, timeout));
  return worker.run(kCheckSlot, timeout);
}

Result<std::vector<Tensor>> answer(Worker& worker, std::span<const Tensor> inputs,
                                   std::chrono::nanoseconds timeout) {
  HASTEN_TRY(CallResult called, call(worker, inputs, timeout));
  return std::move(called.outputs);
}

std::filesystem::path folder_for(const Workshop& shop, const Original& original,
                                 std::string_view purpose) {
  return shop.folder / format("graph-{}-{}", original.graph.name, purpose);
}

// The sizes of every symbol over the samples.
std::vector<SymbolRange> symbols_of(const GraphSpec& graph, std::span<const Sample> samples) {
  std::vector<SymbolRange> ranges;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    for (size_t i = 0; i < graph.inputs[k].axes.size(); ++i) {
      const Axis& axis = graph.inputs[k].axes[i];
      if (axis.kind == AxisKind::kStatic) continue;
      auto range = std::find_if(ranges.begin(), ranges.end(),
                                [&](const SymbolRange& r) { return r.symbol == axis.symbol; });
      if (range != ranges.end()) continue;
      const int64_t unit = std::max<int64_t>(1, axis.multiplier);
      SymbolRange found{axis.symbol, axis.min / unit, axis.max / unit, {}};
      for (const Sample& sample : samples) {
        found.seen.push_back(sample.inputs[k].shape()[i] / unit);
      }
      ranges.push_back(std::move(found));
    }
  }
  return ranges;
}

std::string batch_symbol(const GraphSpec& graph) {
  for (const TensorSpec& input : graph.inputs) {
    for (const Axis& axis : input.axes) {
      if (axis.kind == AxisKind::kBatch) return axis.symbol;
    }
  }
  return "";
}

void make_static(GraphSpec& graph, const std::string& symbol) {
  for (TensorSpec& input : graph.inputs) {
    for (Axis& axis : input.axes) {
      if (axis.symbol != symbol) continue;
      axis.kind = AxisKind::kStatic;
      axis.symbol.clear();
      axis.multiplier = 1;
    }
  }
}

CheckCase case_of(std::string what, std::vector<Tensor> inputs, std::vector<Tensor> outputs,
                  const GraphSpec& graph) {
  CheckCase one;
  one.batch_size = graph.batch_of(inputs);
  one.inputs = std::move(inputs);
  one.reference.what = std::move(what);
  one.reference.outputs = std::move(outputs);
  return one;
}

// The recorded calls, as they are. The original has to answer its own samples.
Status run_samples(Workshop& shop, Original& original) {
  for (size_t i = 0; i < original.samples.size(); ++i) {
    const Sample& sample = original.samples[i];
    Result<CallResult> called = call(*original.worker, sample.inputs, shop.run_timeout());
    if (!called) {
      return std::move(called).error().within(
          format("the original model cannot answer sample {} ({})", i, sample.origin));
    }
    if (i == 0) {
      original.trial.first_call_ms =
          std::chrono::duration<double, std::milli>(called->duration).count();
    }
    original.cases.push_back(case_of(format("sample {} ({})", i, sample.origin),
                                     clones(sample.inputs), std::move(called->outputs),
                                     original.graph));
  }
  return {};
}

// Sizes beyond the recorded ones. Where the original itself refuses one, the sizes are
// what it was seen with: a candidate need not do more than the original.
Status run_planned_sizes(Workshop& shop, Original& original, bool batch_is_guessed) {
  const std::string batch = batch_symbol(original.graph);
  const std::vector<SymbolRange> symbols = symbols_of(original.graph, original.samples);
  for (const PlannedSize& planned : plan_sizes(symbols)) {
    const Sample& sample = original.samples.front();
    const bool is_batch = planned.symbol == batch;
    std::vector<Tensor> inputs =
        is_batch ? make_batch(original.graph, sample.inputs, planned.size)
                 : resize_symbol(original.graph, sample.inputs, planned.symbol, planned.size);
    HASTEN_TRY(Worker * worker, at_hand(shop, original));
    Result<std::vector<Tensor>> outputs = answer(*worker, inputs, shop.run_timeout());
    if (shop.stopped()) return Error{Code::kCancelled, "the tune was ended"};
    if (outputs) {
      original.cases.push_back(
          case_of(format("{} = {} ({})", planned.symbol, planned.size, planned.why),
                  std::move(inputs), std::move(*outputs), original.graph));
      original.cases.back().repeats_rows = is_batch;
      continue;
    }
    if (is_batch && batch_is_guessed) {
      make_static(original.graph, batch);
      original.warnings.push_back(
          format("axis 0 is not a batch axis: the model refuses {} rows ({}); every call is one "
                 "batch of 1",
                 planned.size, outputs.error().message));
      // Its cases so far were made on a wrong assumption.
      original.cases.resize(original.samples.size());
      for (CheckCase& one : original.cases) one.batch_size.reset();
      return run_planned_sizes(shop, original, false);
    }
    original.warnings.push_back(
        format("the original refuses {} = {} ({}), so that size is not checked", planned.symbol,
               planned.size, outputs.error().message));
  }
  return {};
}

// Integers that samples are too small to show. In a process of its own and for a short time:
// what such values do to a model (an index, a length) nobody knows, and a model that does not
// answer them is not asked for more.
void probe_wide_integers(Workshop& shop, Original& original) {
  constexpr std::chrono::nanoseconds kTimeout = std::chrono::seconds(10);
  const CheckCase& first = original.cases.front();
  if (!computes_wide_integers(first.inputs, first.reference.outputs)) return;
  Result<Worker> worker = build_original(shop, original, original.trial.candidate,
                                         folder_for(shop, original, "wide-integers"));
  if (!worker) return;
  std::vector<Tensor> inputs = beyond_32_bits(first.inputs);
  Result<std::vector<Tensor>> outputs =
      answer(*worker, inputs, std::min(shop.run_timeout(), kTimeout));
  if (!outputs) return;
  original.cases.push_back(
      case_of("integers beyond 32 bits", std::move(inputs), std::move(*outputs), original.graph));
}

Status study_behaviour(Workshop& shop, Original& original) {
  const CheckCase& first = original.cases.front();
  HASTEN_TRY(Worker * worker, at_hand(shop, original));
  HASTEN_TRY(const CallResult again, call(*worker, first.inputs, shop.run_timeout()));
  const CheckRecord repeat =
      check_outputs(again.outputs, first.reference, original.tolerances, original.output_names);
  original.repeatable = repeat.passed;
  if (!original.repeatable) {
    original.warnings.push_back(
        "two calls of the original with the same inputs differ: it is random or keeps state "
        "between calls, so no candidate can be proved and the original is kept");
  }
  Result<CallAudit> audit = audit_calls(*worker, original, first, shop.run_timeout());
  if (!audit) {
    original.takes_other_values = false;
    HASTEN_TRY(worker, at_hand(shop, original));
    audit = audit_calls(*worker, original, first, shop.run_timeout());
  }
  HASTEN_TRY(original.audit, std::move(audit));
  study_row_rules(shop, original, again.duration);
  if (original.writes_inputs()) {
    original.warnings.push_back(
        format("the original writes into its input '{}': every measured call gets fresh inputs",
               original.graph.inputs[original.audit.written_inputs.front()].name));
  }
  return {};
}

// Float64 answers, where the model runs in float64. That it does not is no failure.
void ask_oracle(Workshop& shop, Original& original) {
  const Proposal* oracle = original.backend->with_role("oracle");
  if (!oracle) return;
  Result<Worker> worker = build_original(shop, original, oracle->candidate,
                                         folder_for(shop, original, "oracle"));
  if (!worker) return;
  std::vector<std::vector<Tensor>> exact;
  for (const CheckCase& one : original.cases) {
    exact.emplace_back();
    if (one.repeats_rows) continue;
    Result<std::vector<Tensor>> outputs = answer(*worker, one.inputs, shop.run_timeout());
    if (!outputs || outputs->size() != one.reference.outputs.size()) return;
    exact.back() = std::move(*outputs);
  }
  for (size_t i = 0; i < exact.size(); ++i) {
    original.cases[i].reference.exact = std::move(exact[i]);
  }
}

// Where the file itself does not tell how many outputs there are, its backend may know now.
std::vector<ValueInfo> told_outputs(Workshop& shop, Original& original, const Signature& signature,
                                    size_t count) {
  if (signature.outputs.size() == count) return signature.outputs;
  const Result<Worker*> worker = at_hand(shop, original);
  if (!worker) return {};
  const Result<Json> json =
      (*worker)->inspect(original.model.path, original.model.format, shop.run_timeout(),
                         original.graph.to_json());
  if (!json) return {};
  Result<Signature> known = Signature::from_json(*json);
  return known && known->outputs.size() == count ? known->outputs : std::vector<ValueInfo>();
}

void name_outputs(Workshop& shop, Original& original, const Signature& signature) {
  const size_t count = original.cases.front().reference.outputs.size();
  const std::vector<ValueInfo> told = told_outputs(shop, original, signature, count);
  std::set<std::string> taken;
  for (size_t i = 0; i < count; ++i) {
    const bool named = !told.empty() && !told[i].name.empty() && !taken.contains(told[i].name);
    original.output_names.push_back(named        ? told[i].name
                                    : count == 1 ? "output"
                                                 : format("output_{}", i));
    taken.insert(original.output_names.back());
  }
}

void describe_outputs(Original& original) {
  std::vector<std::vector<Tensor>> outputs;
  std::vector<std::optional<int64_t>> batch_sizes;
  for (const CheckCase& one : original.cases) {
    outputs.push_back(clones(one.reference.outputs));
    batch_sizes.push_back(one.batch_size);
  }
  original.graph.outputs =
      output_specs(original.graph, outputs, batch_sizes, original.output_names);
}

void derive(const TuneOptions& options, Original& original) {
  TolerancePolicy policy;
  policy.absolute = options.absolute_tolerance;
  policy.relative = options.relative_tolerance;
  std::vector<Reference> references;
  for (CheckCase& one : original.cases) references.push_back(std::move(one.reference));
  original.tolerances = derive_tolerances(references, policy);
  if (options.allow_lossy) policy.lossy = options.allow_lossy;
  original.lossy_tolerances = derive_tolerances(references, policy);
  for (size_t i = 0; i < references.size(); ++i) {
    original.cases[i].reference = std::move(references[i]);
  }
}

Result<Original> study(Workshop& shop, const Model& model, const Scouted& backend,
                       PreparedGraph prepared, const Signature& signature) {
  const Proposal* proposal = backend.with_role("baseline");
  Original original;
  original.model = model;
  original.backend = &backend;
  original.trial.candidate = proposal->candidate;
  original.trial.version = backend.library_version();
  original.trial.graph = prepared.spec.name;
  original.graph = std::move(prepared.spec);
  original.samples = std::move(prepared.samples);
  original.batch_has_range = prepared.batch_has_range;
  shop.say("reference", format("running the original ({})", proposal->candidate.label()));

  const std::chrono::nanoseconds begin = shop.clock.now();
  HASTEN_TRY_STATUS(at_hand(shop, original));
  original.trial.build_s = std::chrono::duration<double>(shop.clock.now() - begin).count();
  HASTEN_TRY_STATUS(run_samples(shop, original));
  HASTEN_TRY_STATUS(run_planned_sizes(shop, original, prepared.batch_is_guessed));
  probe_wide_integers(shop, original);
  ask_oracle(shop, original);
  name_outputs(shop, original, signature);
  describe_outputs(original);
  derive(shop.options, original);
  HASTEN_TRY_STATUS(study_behaviour(shop, original));
  if (Result<uint64_t> peak = original.worker->peak_memory_bytes()) {
    original.trial.peak_memory_bytes = *peak;
  }
  original.worker->stop();
  shop.say("reference", format("{} calls to agree with", original.cases.size()));
  return original;
}

}  // namespace

std::string SweepEnd::describe() const {
  return format("not measured from batch {} on: {}", batch_size, why);
}

std::vector<Tensor> clones(std::span<const Tensor> tensors) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.clone());
  return out;
}

std::optional<int64_t> Original::fastest_call(int64_t batch_size, const ArmSamples& race) {
  for (const std::vector<int64_t>& calls : race.rounds) {
    for (const int64_t ns : calls) {
      const auto [known, is_new] = fastest_ns.try_emplace(batch_size, ns);
      if (!is_new) known->second = std::min(known->second, ns);
    }
  }
  const auto found = fastest_ns.find(batch_size);
  return found == fastest_ns.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Tensor> Original::inputs_at(int64_t batch_size) const {
  // The sample with the most rows: cycling repeats as little as possible.
  const Sample* best = &samples.front();
  int64_t most = 0;
  for (const Sample& sample : samples) {
    const int64_t rows = graph.batch_of(sample.inputs).value_or(0);
    if (rows > most) {
      most = rows;
      best = &sample;
    }
  }
  if (!graph.has_batch_axis()) return clones(best->inputs);
  return make_batch(graph, best->inputs, batch_size);
}

Result<Worker> build_original(Workshop& shop, const Original& original, const Candidate& candidate,
                              const std::filesystem::path& folder) {
  const Model& model = original.model;
  HASTEN_TRY_STATUS(make_folder(folder));
  const UnionTimer::Scope work = shop.work.piece();
  HASTEN_TRY(Worker worker,
             Worker::start(shop.spawner, worker_options(shop, original.backend->entry, folder)));
  if (Status built = worker.build(model.path, model.format, original.graph.to_json(), candidate,
                                  shop.in_study(shop.options.build_timeout));
      !built) {
    // Some engines name the file themselves.
    const bool named = built.error().message.find(model.path.string()) != std::string::npos;
    return named ? std::move(built).error() : std::move(built).error().within(model.path.string());
  }
  return worker;
}

Result<Worker*> at_hand(Workshop& shop, Original& original) {
  if (!original.worker || !original.worker->alive()) {
    original.worker.reset();
    HASTEN_TRY(original.worker, build_original(shop, original, original.trial.candidate,
                                               folder_for(shop, original, "original")));
  }
  return &*original.worker;
}

Result<CallAudit> audit_calls(Worker& worker, const Original& original, const CheckCase& one,
                              std::chrono::nanoseconds timeout) {
  const std::vector<Tensor> others =
      original.takes_other_values ? other_values(one.inputs) : clones(one.inputs);
  HASTEN_TRY_STATUS(worker.set_inputs(kCheckSlot, one.inputs, timeout));
  HASTEN_TRY_STATUS(worker.set_inputs(kOtherSlot, others, timeout));
  return worker.audit(kCheckSlot, kOtherSlot, timeout);
}

Result<Original> study_original(Workshop& shop, const Model& model, const Scouted& backend,
                                PreparedGraph prepared, const Signature& signature) {
  shop.study_deadline = shop.end;
  Result<Original> studied = study(shop, model, backend, std::move(prepared), signature);
  shop.study_deadline.reset();
  if (studied) return studied;
  // Neither is the model's fault, whatever step it came between.
  if (shop.stopped()) return Error{Code::kCancelled, "the tune was ended"};
  if (shop.end && shop.clock.now() >= *shop.end) {
    return Error{Code::kTimedOut,
                 format("--max-time ({}) ended the tune before the original had run",
                        human_duration(*shop.options.max_time)),
                 "nothing can be checked without its answers: give it more time, or fewer and "
                 "smaller inputs"};
  }
  return studied;
}

}  // namespace hasten
