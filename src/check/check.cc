// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include "base/text.h"
#include "check/judge.h"
#include "tensor/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hasten {
namespace {

// How much of what was allowed is used up; exact outputs allow nothing.
double used(const WorstDeviation& worst) {
  if (worst.absolute == 0) return 0;
  return worst.limit > 0 ? worst.absolute / worst.limit : std::numeric_limits<double>::infinity();
}

void fail(CheckRecord& record, std::string rule, std::string message) {
  if (!record.passed) return;  // The first one tells; the rest follows from it.
  record.passed = false;
  record.rule = std::move(rule);
  record.message = std::move(message);
}

// What makes a comparison by value impossible.
void check_form(CheckRecord& record, std::span<const Tensor> actual,
                std::span<const Tensor> expected, std::span<const std::string> names) {
  if (actual.size() != expected.size()) {
    return fail(record, "outputs", format("{} outputs, not {}", actual.size(), expected.size()));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].dtype() == expected[i].dtype()) continue;
    fail(record, "dtype",
         format("output '{}' is {}, not {}", output_name(names, i), to_string(actual[i].dtype()),
                to_string(expected[i].dtype())));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::ranges::equal(actual[i].shape(), expected[i].shape())) continue;
    fail(record, "shape",
         format("output '{}' is {}, not {}", output_name(names, i), shape_text(actual[i].shape()),
                shape_text(expected[i].shape())));
  }
}

}  // namespace

std::string output_name(std::span<const std::string> names, size_t i) {
  return i < names.size() && !names[i].empty() ? names[i] : format("output {}", i);
}

std::string value_text(double value) { return format("{:.6g}", value); }

void keep_worst(std::optional<WorstDeviation>& worst, const WorstDeviation& other) {
  const bool worse = !worst || used(other) > used(*worst) ||
                     (used(other) == used(*worst) && other.absolute > worst->absolute);
  if (worse) worst = other;
}

std::optional<WorstDeviation> deviation_of(const Difference& difference, const std::string& name) {
  if (!difference.mismatch.empty()) return std::nullopt;
  return WorstDeviation{.output = name,
                        .index = difference.index,
                        .absolute = difference.absolute,
                        .relative = difference.relative,
                        .limit = difference.limit};
}

std::string deviation_text(const Difference& difference, const std::string& name, size_t size) {
  const std::string where = format("at {}", shape_text(difference.index));
  const std::string values =
      format("{}, not {}", value_text(difference.actual), value_text(difference.expected));
  const std::string extent = format("{} of {} elements are outside", difference.outside, size);
  if (!std::isfinite(difference.absolute)) {
    return format("output '{}' is {} {}; {}", name, values, where, extent);
  }
  return format("output '{}' is off by {:.3g} {} (limit {:.3g}): {}; {}", name, difference.absolute,
                where, difference.limit, values, extent);
}

CheckRecord compare_outputs(std::span<const Tensor> actual, std::span<const Tensor> expected,
                            std::span<const OutputTolerance> tolerances,
                            std::span<const std::string> names, const std::string& what) {
  if (tolerances.size() != expected.size()) {
    throw std::logic_error("compare_outputs: one tolerance for each output");
  }
  CheckRecord record;
  record.passed = true;
  record.checked = {what};
  check_form(record, actual, expected, names);
  if (!record.passed) {
    record.message = what + ": " + record.message;
    return record;
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const Difference difference = compare(actual[i], expected[i], tolerances[i].tolerance);
    const std::string name = output_name(names, i);
    if (expected[i].size() > 0) keep_worst(record.worst, *deviation_of(difference, name));
    if (difference.within) continue;
    // NaN or infinity on one side only is no matter of degree.
    const bool special = !std::isfinite(difference.absolute);
    fail(record, special ? "non-finite" : "values",
         what + ": " + deviation_text(difference, name, expected[i].size()));
  }
  return record;
}

CheckRecord check_outputs(std::span<const Tensor> actual, const Reference& reference,
                          std::span<const OutputTolerance> tolerances,
                          std::span<const std::string> names) {
  return compare_outputs(actual, reference.outputs, tolerances, names, reference.what);
}

CheckRecord merge(std::span<const CheckRecord> records) {
  CheckRecord all;
  all.passed = true;
  if (records.empty()) fail(all, "nothing checked", "no call was checked");
  for (const CheckRecord& record : records) {
    if (!record.passed) fail(all, record.rule, record.message);
    if (record.worst) keep_worst(all.worst, *record.worst);
    all.checked.insert(all.checked.end(), record.checked.begin(), record.checked.end());
  }
  return all;
}

}  // namespace hasten
