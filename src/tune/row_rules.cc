// SPDX-License-Identifier: Apache-2.0
#include "tune/row_rules.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "check/metamorphic.h"
#include "tensor/ops.h"
#include "tune/slots.h"

namespace hasten {
namespace {

// Enough rows for every lane and block that kernels work in, where the original answers them
// soon: each candidate is asked for three times as many.
constexpr int64_t kMostRows = 64;
constexpr std::chrono::nanoseconds kSoon = std::chrono::milliseconds(150);
constexpr double kMostBytes = 64 << 20;

// 0: there is no size worth it.
int64_t rows_to_try(const Original& original, std::chrono::nanoseconds call) {
  const CheckCase& first = original.cases.front();
  const int64_t known = first.batch_size.value_or(0);
  if (known < 1) return 0;
  const int64_t time = std::max<int64_t>(1, call.count() / known);
  int64_t rows = std::min(kMostRows, kSoon.count() / time);
  if (original.batch_has_range) rows = std::min(rows, original.graph.max_batch());
  if (rows < 1) return 0;
  rows = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  if (bytes_of_batch(original.graph, first.inputs, rows) > kMostBytes) return 0;
  // At the sizes of the cases the values themselves are compared.
  const bool is_new = std::none_of(original.cases.begin(), original.cases.end(),
                                   [&](const CheckCase& c) { return c.batch_size >= rows; });
  return is_new && rows >= 4 ? rows : 0;
}

BatchAxes batch_axes(const GraphSpec& graph) {
  BatchAxes all;
  for (const TensorSpec& output : graph.outputs) {
    std::optional<size_t> found;
    for (size_t i = 0; i < output.axes.size() && !found; ++i) {
      if (output.axes[i].kind == AxisKind::kBatch) found = i;
    }
    all.push_back(found);
  }
  return all;
}

// Both answers that are compared may be off by the tolerance.
std::vector<OutputTolerance> doubled(std::vector<OutputTolerance> tolerances) {
  for (OutputTolerance& one : tolerances) {
    one.tolerance.absolute *= 2;
    one.tolerance.relative *= 2;
  }
  return tolerances;
}

struct Question {
  const Original& original;
  Worker& worker;
  std::chrono::nanoseconds timeout;
  std::vector<OutputTolerance> tolerances;

  Result<std::vector<Tensor>> answer(const std::vector<Tensor>& inputs) const {
    HASTEN_TRY_STATUS(worker.set_inputs(kCheckSlot, inputs, timeout));
    HASTEN_TRY(CallResult call, worker.run(kCheckSlot, timeout));
    return std::move(call.outputs);
  }

  Result<CheckRecord> equal_rows(int64_t rows) const {
    const GraphSpec& graph = original.graph;
    const std::vector<Tensor> row = make_batch(graph, original.cases.front().inputs, 1);
    HASTEN_TRY(const std::vector<Tensor> outputs, answer(make_batch(graph, row, rows)));
    return check_equal_rows(outputs, batch_axes(graph), tolerances, original.output_names);
  }

  Result<CheckRecord> split(int64_t rows) const {
    const std::vector<Tensor> inputs = original.inputs_at(rows);
    HASTEN_TRY(const std::vector<Tensor> whole, answer(inputs));
    std::vector<std::vector<Tensor>> parts;
    for (const auto& [begin, end] : {std::pair(int64_t{0}, rows / 4), std::pair(rows / 4, rows)}) {
      HASTEN_TRY(std::vector<Tensor> part, answer(rows_of(inputs, begin, end)));
      parts.push_back(std::move(part));
    }
    return check_split(whole, parts, batch_axes(original.graph), tolerances,
                       original.output_names);
  }

  std::vector<Tensor> rows_of(const std::vector<Tensor>& inputs, int64_t begin, int64_t end) const {
    std::vector<Tensor> part = clones(inputs);
    for (size_t k = 0; k < part.size(); ++k) {
      const std::vector<Axis>& axes = original.graph.inputs[k].axes;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].kind != AxisKind::kBatch) continue;
        part[k] = sliced(part[k], i, begin * axes[i].multiplier, end * axes[i].multiplier);
      }
    }
    return part;
  }
};

}  // namespace

void study_row_rules(Workshop& shop, Original& original, std::chrono::nanoseconds call) {
  const int64_t rows = rows_to_try(original, call);
  if (rows == 0) return;
  // A rule that it does not keep, or a size that it does not take, says nothing of others.
  const auto keeps = [&](const auto& rule) {
    const Result<Worker*> worker = at_hand(shop, original);
    if (!worker) return false;
    const Result<CheckRecord> record = rule(Question{original, **worker, shop.run_timeout(),
                                                     doubled(original.tolerances)});
    return record && record->passed;
  };
  original.row_rules = {
      .rows = rows,
      .equal_rows = keeps([&](const Question& question) { return question.equal_rows(rows); }),
      .split = keeps([&](const Question& question) { return question.split(rows); })};
}

Result<CheckRecord> check_row_rules(const Workshop& shop, const Original& original,
                                    Contestant& contestant) {
  const RowRules& rules = original.row_rules;
  const Question question{original, *contestant.worker, shop.options.run_timeout,
                          doubled(original.tolerances_for(contestant.lossy))};
  CheckRecord record;
  record.passed = true;
  if (rules.rows == 0 || !contestant.covers(original.graph, original.inputs_at(rules.rows))) {
    return record;
  }
  if (rules.equal_rows) {
    HASTEN_TRY(record, question.equal_rows(rules.rows));
  }
  if (record.passed && rules.split) {
    HASTEN_TRY(record, question.split(rules.rows));
  }
  return record;
}

}  // namespace hasten
