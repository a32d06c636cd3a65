// SPDX-License-Identifier: Apache-2.0
#include "check/metamorphic.h"

#include "base/text.h"
#include "check/judge.h"
#include "tensor/ops.h"

#include <algorithm>

namespace hasten {
namespace {

CheckRecord passing(std::string what) {
  CheckRecord record;
  record.passed = true;
  record.checked = {std::move(what)};
  return record;
}

CheckRecord failing(std::string what, std::string rule, std::string message) {
  CheckRecord record;
  record.checked = {std::move(what)};
  record.rule = std::move(rule);
  record.message = std::move(message);
  return record;
}

// One output against what it should be, under the name of a metamorphic rule.
void judge(CheckRecord& record, const std::string& rule, const std::string& name,
           const Tensor& actual, const Tensor& expected, const OutputTolerance& tolerance) {
  const Difference difference = compare(actual, expected, tolerance.tolerance);
  const auto deviation = deviation_of(difference, name);
  if (deviation && expected.size() > 0) keep_worst(record.worst, *deviation);
  if (difference.within && difference.mismatch.empty()) return;
  if (!record.passed) return;
  record.passed = false;
  record.rule = rule;
  record.message = record.checked.front() + ": ";
  record.message += difference.mismatch.empty()
                        ? deviation_text(difference, name, expected.size())
                        : format("output '{}' is {}", name, difference.mismatch);
}

std::string input_name(std::span<const std::string> names, size_t i) {
  return i < names.size() && !names[i].empty() ? "'" + names[i] + "'" : format("{}", i);
}

bool has(const std::vector<size_t>& list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

CheckRecord check_repeat(std::span<const Tensor> first, std::span<const Tensor> second,
                         std::span<const OutputTolerance> tolerances,
                         std::span<const std::string> names) {
  CheckRecord record = compare_outputs(second, first, tolerances, names, "the same call again");
  if (!record.passed) record.rule = "repeat";
  return record;
}

CheckRecord check_split(std::span<const Tensor> whole, std::span<const std::vector<Tensor>> parts,
                        const BatchAxes& axes, std::span<const OutputTolerance> tolerances,
                        std::span<const std::string> names) {
  const std::string what = format("the batch in {} parts", parts.size());
  CheckRecord record = passing(what);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i >= axes.size() || !axes[i]) continue;
    const std::string name = output_name(names, i);
    std::vector<Tensor> pieces;
    for (const std::vector<Tensor>& part : parts) {
      if (part.size() != whole.size()) {
        return failing(what, "split",
                       format("{}: {} outputs, not {}", what, part.size(), whole.size()));
      }
      pieces.push_back(part[i].clone());
    }
    const Result<Tensor> joined = concatenated(pieces, *axes[i]);
    if (!joined) {
      return failing(what, "split",
                     format("{}: output '{}': {}", what, name, joined.error().message));
    }
    judge(record, "split", name, *joined, whole[i], tolerances[i]);
  }
  return record;
}

CheckRecord check_equal_rows(std::span<const Tensor> outputs, const BatchAxes& axes,
                             std::span<const OutputTolerance> tolerances,
                             std::span<const std::string> names) {
  CheckRecord record = passing("a batch of equal rows");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= axes.size() || !axes[i]) continue;
    const int64_t rows = outputs[i].shape()[*axes[i]];
    if (rows < 2) continue;
    // Row 0, repeated: the worst index then names the row that differs.
    const Tensor expected = cycled(sliced(outputs[i], *axes[i], 0, 1), *axes[i], rows);
    judge(record, "equal rows", output_name(names, i), outputs[i], expected, tolerances[i]);
  }
  return record;
}

CheckRecord check_side_effects(const SideEffects& own, const SideEffects& original,
                               std::span<const std::string> input_names,
                               std::span<const std::string> output_names) {
  const std::string what = "side effects";
  if (own.first_result_changed && !original.first_result_changed) {
    return failing(what, "results stay", "the result of one call changed during the next");
  }
  for (const auto& alias : own.aliases) {
    const auto& known = original.aliases;
    if (std::find(known.begin(), known.end(), alias) != known.end()) continue;
    return failing(
        what, "no alias",
        format("output '{}' lies in the memory of input {}", output_name(output_names, alias.first),
               input_name(input_names, alias.second)));
  }
  for (size_t i : own.written_inputs) {
    if (has(original.written_inputs, i)) continue;
    return failing(what, "inputs stay",
                   format("it writes into input {}, which the original only reads",
                          input_name(input_names, i)));
  }
  for (size_t i : original.written_inputs) {
    if (has(own.written_inputs, i)) continue;
    return failing(
        what, "inputs stay",
        format("the original writes into input {}, this does not", input_name(input_names, i)));
  }
  return passing(what);
}

}  // namespace hasten
