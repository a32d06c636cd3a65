// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include "base/text.h"
#include "tensor/ops.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hasten {
namespace {

// Relative parts are fractions of the expected element, absolute parts fractions of the
// output's own scale (see scale_of), so that an embedding around 0.03 is not judged by
// the measure of logits around 5.
//
// Seen on image, text and speech models in float32: honest engines differ from eager by
// at most 1e-5 of the scale, and by 0.2 to 2.2 times eager's own error against float64.
// Rounding to bfloat16 costs up to 3.9e-3 and to float16 (or TF32) up to 4.9e-4.
struct Limits {
  // Without an oracle. Near ties in a softmax amplify honest rounding up to some 1e-4, so
  // float32 gets fifty times what was seen; most values rounded to bfloat16 still fall out.
  double relative = 0, absolute = 0;
  // With one: what stays allowed where eager happens to be exact, as on a single sum that
  // an engine orders otherwise. Twice what was seen; a value rounded to float16 falls out.
  double floor_relative = 0, floor_absolute = 0;
  // However wrong eager itself is: far below 1, so that zeros and a wrong row always fail.
  double ceiling_absolute = 0;
};

Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return {.relative = 5e-4,
              .absolute = 1e-4,
              .floor_relative = 1e-5,
              .floor_absolute = 2e-5,
              .ceiling_absolute = 1e-2};
    // Half precision: engines keep more or fewer intermediate results in it, each rounding
    // costs 4.9e-4 (float16) or 3.9e-3 (bfloat16) at most; the floors are four of them, the
    // defaults a dozen or two.
    case DType::kFloat16:
      return {.relative = 1e-2,
              .absolute = 1e-2,
              .floor_relative = 2e-3,
              .floor_absolute = 2e-3,
              .ceiling_absolute = 5e-2};
    case DType::kBFloat16:
      return {.relative = 5e-2,
              .absolute = 5e-2,
              .floor_relative = 1.6e-2,
              .floor_absolute = 1.6e-2,
              .ceiling_absolute = 1e-1};
    // Between float64's own noise and float32's (6e-8 a rounding), so that an engine that
    // computes in float32 without a word falls out, whatever eager does.
    case DType::kFloat64:
    case DType::kComplex128:
      return {.relative = 1e-9,
              .absolute = 1e-9,
              .floor_relative = 1e-9,
              .floor_absolute = 1e-9,
              .ceiling_absolute = 1e-8};
    default:
      return {};
  }
}

bool is_exact(DType dtype) { return limits_of(dtype).ceiling_absolute == 0; }

bool is_real(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The magnitudes that an output is made of.
struct Scale {
  double typical = 0;  // Median. 0: nothing but zeros.
  double rms = 0;
};

// Of what is neither zero nor infinite, without values that repeat at either end: those
// are the -1e9 of a mask or a saturation, and would hide any error in the values that count.
Scale scale_of(const Tensor& output) {
  std::vector<double> values = to_doubles(output);  // The only copy: outputs can be large.
  std::erase_if(values, [](double v) { return !std::isfinite(v) || v == 0; });
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, most = *high;
  const bool repeats_low = std::count(values.begin(), values.end(), least) > 1;
  const bool repeats_high = std::count(values.begin(), values.end(), most) > 1;
  const auto at_an_end = [&](double v) {
    return (repeats_low && v == least) || (repeats_high && v == most);
  };
  if (!std::all_of(values.begin(), values.end(), at_an_end)) std::erase_if(values, at_an_end);
  double squares = 0;
  for (double& v : values) {
    v = std::abs(v);
    squares += v * v;
  }
  const double rms = std::sqrt(squares / static_cast<double>(values.size()));
  return {.typical = median_of(values), .rms = rms};
}

// What eager's own error asks for at one output of one call: the least absolute part
// with factor * error <= absolute + relative * |value| at every element.
double needed_absolute(const Tensor& eager, const Tensor& exact, double factor, double relative) {
  const std::vector<double> a = to_doubles(eager), e = to_doubles(exact);
  double needed = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = factor * std::abs(a[i] - e[i]) - relative * std::abs(a[i]);
    if (std::isfinite(error)) needed = std::max(needed, error);
  }
  return needed;
}

// What is known about one output over all references.
struct Evidence {
  DType dtype = DType::kFloat32;
  double scale = 0, rms = 0;
  bool oracle = false;       // Whenever it was asked, it gave an answer of this shape.
  bool more_precise = true;  // In a wider dtype than eager's.
  double needed = 0;
};

bool comparable(const Tensor& eager, const Tensor& exact) {
  return is_real(eager.dtype()) && is_real(exact.dtype()) &&
         std::ranges::equal(eager.shape(), exact.shape());
}

Evidence evidence_for(size_t output, std::span<const Reference> references, double factor) {
  Evidence found{.dtype = references.front().outputs[output].dtype()};
  const Limits limits = limits_of(found.dtype);
  if (is_exact(found.dtype)) return found;
  found.oracle = std::ranges::any_of(references, [](const Reference& r) { return !r.exact.empty(); });
  for (const Reference& reference : references) {
    const Tensor& eager = reference.outputs[output];
    const Scale scale = scale_of(eager);
    found.scale = std::max(found.scale, scale.typical);
    found.rms = std::max(found.rms, scale.rms);
    if (reference.exact.empty()) continue;
    if (output >= reference.exact.size() || !comparable(eager, reference.exact[output])) {
      found.oracle = false;
      continue;
    }
    const Tensor& exact = reference.exact[output];
    found.more_precise =
        found.more_precise && size_bytes(exact.dtype()) > size_bytes(eager.dtype());
    found.needed =
        std::max(found.needed, needed_absolute(eager, exact, factor, limits.floor_relative));
  }
  // Nothing but zeros: an error can only be measured against 1.
  if (found.scale == 0) found.scale = 1;
  return found;
}

OutputTolerance derived(const Evidence& evidence, double factor) {
  const std::string dtype(to_string(evidence.dtype));
  if (is_exact(evidence.dtype)) return {.tolerance = {}, .source = "exact, as " + dtype + " is"};
  const Limits limits = limits_of(evidence.dtype);
  const Tolerance otherwise{.absolute = limits.absolute * evidence.scale,
                            .relative = limits.relative};
  // An oracle in the same precision is one more honest engine: it can show that the model
  // amplifies rounding, but not that eager is good.
  const bool sharp = evidence.oracle && evidence.more_precise;
  const Tolerance least = sharp ? Tolerance{.absolute = limits.floor_absolute * evidence.scale,
                                            .relative = limits.floor_relative}
                                : otherwise;
  const double most = limits.ceiling_absolute * evidence.scale;
  if (!evidence.oracle) return {.tolerance = otherwise, .source = "default for " + dtype};
  if (evidence.needed <= least.absolute) {
    return {.tolerance = least, .source = format("{} for {}", sharp ? "floor" : "default", dtype)};
  }
  return {.tolerance = {.absolute = std::min(evidence.needed, most), .relative = least.relative},
          .source = evidence.needed > most ? "ceiling for " + dtype
                                           : format("{:g} x eager's error against {}", factor,
                                                    sharp ? "float64" : "the unoptimised model")};
}

// What the user said takes the place of what was derived.
void apply(const TolerancePolicy& policy, const Evidence& evidence, OutputTolerance& one) {
  if (policy.absolute || policy.relative) {
    one.tolerance.absolute = policy.absolute.value_or(one.tolerance.absolute);
    one.tolerance.relative = policy.relative.value_or(one.tolerance.relative);
    one.source = "given";
  }
  if (policy.lossy) {
    one.tolerance.absolute = std::max(one.tolerance.absolute, *policy.lossy * evidence.rms);
    one.tolerance.relative = std::max(one.tolerance.relative, *policy.lossy);
    one.source = "allowed for lower precision";
  }
}

}  // namespace

std::vector<OutputTolerance> derive_tolerances(std::span<const Reference> references,
                                               const TolerancePolicy& policy) {
  std::vector<OutputTolerance> all;
  if (references.empty()) return all;
  const size_t count = references.front().outputs.size();
  for (const Reference& reference : references) {
    if (reference.outputs.size() != count) {
      throw std::logic_error("derive_tolerances: references with different numbers of outputs");
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const Evidence evidence = evidence_for(i, references, policy.error_factor);
    OutputTolerance one = derived(evidence, policy.error_factor);
    if (!is_exact(evidence.dtype)) apply(policy, evidence, one);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace hasten
