// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include "check/test_tensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hasten {
namespace {

const Shape kRows = {64, 10};

// Eager's answer in float32, about 1 in size, and the exact one: 1e-7 away everywhere.
Reference eager_with_oracle() {
  Tensor eager = random_tensor(DType::kFloat32, kRows, 7);
  Tensor exact = test_as_double(eager);
  double* values = static_cast<double*>(exact.data());
  for (size_t i = 0; i < exact.size(); ++i) values[i] += 1e-7;
  return test_reference(test_list(std::move(eager)), test_list(std::move(exact)));
}

TolerancePolicy given(std::optional<double> absolute, std::optional<double> relative) {
  TolerancePolicy policy;
  policy.absolute = absolute;
  policy.relative = relative;
  return policy;
}

TolerancePolicy lossy(double relative) {
  TolerancePolicy policy;
  policy.lossy = relative;
  return policy;
}

// What a deviation of float32 may be of the element, where nothing says more.
constexpr double kFloat32Relative = 5e-4;

bool accepts(const Reference& reference, const Tensor& candidate,
             const std::vector<OutputTolerance>& tolerances) {
  std::vector<Tensor> actual;
  actual.push_back(candidate.clone());
  return check_outputs(actual, reference, tolerances, {}).passed;
}

TEST_CASE("Tolerances: integers and booleans are exact, whatever is given") {
  const auto references = test_references(
      test_reference(test_list(test_tensor<int64_t>({1, 2}), test_tensor<uint8_t>({3}),
                               Tensor::zeros(DType::kBool, Shape{2}))));
  for (const TolerancePolicy& policy : {TolerancePolicy{}, given(1, 1), lossy(0.5)}) {
    const auto tolerances = derive_tolerances(references, policy);
    REQUIRE(tolerances.size() == 3);
    for (const OutputTolerance& one : tolerances) {
      CHECK(one.tolerance.absolute == 0);
      CHECK(one.tolerance.relative == 0);
      CHECK(one.source.find("exact") == 0);
    }
  }
}

TEST_CASE("Tolerances: with an oracle, k times eager's own error decides") {
  Tensor eager = test_tensor<float>({1, 2, 4});
  const auto references = test_references(
      test_reference(test_list(std::move(eager)), test_list(test_tensor<double>({1, 2.0001, 4}))));
  const auto tolerances = derive_tolerances(references, {});
  REQUIRE(tolerances.size() == 1);
  // 16 * 1e-4 less the relative part, 1e-5 * 2, at that element.
  CHECK(tolerances[0].tolerance.absolute == doctest::Approx(1.58e-3));
  CHECK(tolerances[0].tolerance.relative == 1e-5);
  CHECK(tolerances[0].source == "16 x eager's error against float64");
  TolerancePolicy quarter_of_it;
  quarter_of_it.error_factor = 4;
  const auto quarter = derive_tolerances(references, quarter_of_it);
  CHECK(quarter[0].tolerance.absolute == doctest::Approx(3.8e-4));
}

TEST_CASE("Tolerances: the largest error of all references counts") {
  std::vector<Reference> references;
  for (double error : {1e-5, 1e-4, 2e-5}) {
    references.push_back(test_reference(test_list(test_tensor<float>({1, 1})),
                                        test_list(test_tensor<double>({1, 1 + error}))));
  }
  CHECK(derive_tolerances(references, {})[0].tolerance.absolute == doctest::Approx(1.59e-3));
}

TEST_CASE("Tolerances: a call for which the oracle was not asked changes nothing") {
  const auto asked = [] {
    return test_reference(test_list(test_tensor<float>({1, 2})), test_list(test_tensor<double>({1, 2.0001})));
  };
  const auto of_one = derive_tolerances(test_references(asked()), {});
  std::vector<Reference> references = test_references(asked());
  references.push_back(test_reference(test_list(test_tensor<float>({1, 2}))));
  const auto of_both = derive_tolerances(references, {});
  CHECK(of_both[0].tolerance.absolute == of_one[0].tolerance.absolute);
  CHECK(of_both[0].source == "16 x eager's error against float64");
}

TEST_CASE("Tolerances: an eager that happens to be exact leaves the floor") {
  const auto references = test_references(test_reference(test_list(test_tensor<float>({-2, 2})),
                                                         test_list(test_tensor<double>({-2, 2}))));
  const auto tolerances = derive_tolerances(references, {});
  CHECK(tolerances[0].tolerance.absolute == doctest::Approx(4e-5));  // 2e-5 of the scale, 2.
  CHECK(tolerances[0].tolerance.relative == 1e-5);
  CHECK(tolerances[0].source == "floor for float32");
}

TEST_CASE("Tolerances: an eager that is far off is capped by the ceiling") {
  const auto references = test_references(test_reference(test_list(test_tensor<float>({-2, 2})),
                                                         test_list(test_tensor<double>({-9, 5}))));
  const auto tolerances = derive_tolerances(references, {});
  CHECK(tolerances[0].tolerance.absolute == doctest::Approx(0.02));
  CHECK(tolerances[0].source == "ceiling for float32");
}

TEST_CASE("Tolerances: without an oracle the default of the dtype follows the output's scale") {
  const auto references = test_references(test_reference(
      test_list(test_tensor<float>({0.03F, -0.03F, 0.03F}), test_tensor<float>({300, -300, 300}))));
  const auto tolerances = derive_tolerances(references, {});
  CHECK(tolerances[0].tolerance.absolute == doctest::Approx(3e-6));
  CHECK(tolerances[1].tolerance.absolute == doctest::Approx(0.03));
  CHECK(tolerances[0].tolerance.relative == kFloat32Relative);
  CHECK(tolerances[0].source == "default for float32");
}

TEST_CASE("Tolerances: an oracle in eager's own precision can only widen the default") {
  const auto none = test_references(test_reference(test_list(test_tensor<float>({1, 2}))));
  const Tolerance otherwise = derive_tolerances(none, {})[0].tolerance;
  const auto same = test_references(
      test_reference(test_list(test_tensor<float>({1, 2})), test_list(test_tensor<float>({1, 2}))));
  CHECK(derive_tolerances(same, {})[0].tolerance.absolute == otherwise.absolute);
  const auto wide = test_references(test_reference(test_list(test_tensor<float>({1, 2})),
                                                   test_list(test_tensor<float>({1, 2.0005F}))));
  const auto widened = derive_tolerances(wide, {});
  CHECK(widened[0].tolerance.absolute > 5e-3);
  CHECK(widened[0].source == "16 x eager's error against the unoptimised model");
}

TEST_CASE("Tolerances: an oracle whose answer has another form, be it to one call, is none") {
  std::vector<Reference> references = test_references(
      test_reference(test_list(test_tensor<float>({1, 2})), test_list(test_tensor<double>({1}))));
  CHECK(derive_tolerances(references, {})[0].source == "default for float32");
  references = test_references(
      test_reference(test_list(test_tensor<float>({1})), test_list(test_tensor<double>({1}))));
  references.push_back(test_reference(test_list(test_tensor<float>({1})),
                                      test_list(test_tensor<double>({1, 2}))));
  CHECK(derive_tolerances(references, {})[0].source == "default for float32");
  references = test_references(
      test_reference(test_list(test_tensor<float>({1})), test_list(test_tensor<int64_t>({1}))));
  CHECK(derive_tolerances(references, {})[0].source == "default for float32");
}

TEST_CASE("Tolerances: NaN and infinity in the answers say nothing about the tolerance") {
  const float inf = std::numeric_limits<float>::infinity();
  const auto references =
      test_references(test_reference(test_list(test_tensor<float>({1, -1, inf, NAN})),
                                     test_list(test_tensor<double>({1, -1, 5, 5}))));
  CHECK(derive_tolerances(references, {})[0].tolerance.absolute == doctest::Approx(2e-5));
}

TEST_CASE("Tolerances: the constant of a mask does not hide errors in what counts") {
  // Three quarters masked with -1e9, the rest around 1: a root mean square would be 9e8.
  Tensor masked = test_changed(random_tensor(DType::kFloat32, Shape{400}, 3),
                               [](float v, size_t i) { return i % 4 == 0 ? v : -1e9F; });
  const Reference reference = test_reference(test_list(std::move(masked)));
  const auto references = test_references(test_reference(test_clones(reference.outputs)));
  const auto tolerances = derive_tolerances(references, {});
  CHECK(tolerances[0].tolerance.absolute < 2e-4);
  const Tensor wrong =
      test_changed(reference.outputs[0], [](float v, size_t i) { return i == 8 ? v + 0.01F : v; });
  CHECK(accepts(reference, reference.outputs[0], tolerances));
  CHECK_FALSE(accepts(reference, wrong, tolerances));
}

TEST_CASE("Tolerances: nothing but zeros is measured against 1") {
  const auto references =
      test_references(test_reference(test_list(Tensor::zeros(DType::kFloat32, Shape{4}))));
  CHECK(derive_tolerances(references, {})[0].tolerance.absolute == doctest::Approx(1e-4));
  const auto empty =
      test_references(test_reference(test_list(Tensor::zeros(DType::kFloat32, Shape{0, 3}))));
  CHECK(derive_tolerances(empty, {})[0].tolerance.absolute == doctest::Approx(1e-4));
}

TEST_CASE("Tolerances: what the user gives replaces what was derived") {
  const auto references = test_references(test_reference(test_list(test_tensor<float>({-2, 2}))));
  const auto both = derive_tolerances(references, given(0.5, 0.25));
  CHECK(both[0].tolerance.absolute == 0.5);
  CHECK(both[0].tolerance.relative == 0.25);
  CHECK(both[0].source == "given");
  const auto absolute = derive_tolerances(references, given(0, std::nullopt));
  CHECK(absolute[0].tolerance.absolute == 0);
  CHECK(absolute[0].tolerance.relative == kFloat32Relative);
  const auto relative = derive_tolerances(references, given(std::nullopt, 0));
  CHECK(relative[0].tolerance.absolute == doctest::Approx(2e-4));
  CHECK(relative[0].tolerance.relative == 0);
}

TEST_CASE("Tolerances: what is allowed for lower precision is meant of the output as a whole") {
  const auto references = test_references(test_reference(test_list(test_tensor<float>({-1, 7}))));
  const auto tolerances = derive_tolerances(references, lossy(0.1));
  CHECK(tolerances[0].tolerance.relative == 0.1);
  CHECK(tolerances[0].tolerance.absolute == doctest::Approx(0.5));  // The root mean square is 5.
  CHECK(tolerances[0].source == "allowed for lower precision");
  // Never tighter than what every candidate may do.
  CHECK(derive_tolerances(references, lossy(0))[0].tolerance.relative ==
        kFloat32Relative);
}

TEST_CASE("Tolerances: what an honest engine may do passes, with an oracle and without") {
  Reference with_oracle = eager_with_oracle();
  Reference without = test_reference(test_clones(with_oracle.outputs));
  for (const Reference* reference : {&with_oracle, &without}) {
    std::vector<Reference> one = test_references(
        test_reference(test_clones(reference->outputs), test_clones(reference->exact)));
    const auto tolerances = derive_tolerances(one, {});
    CHECK(accepts(*reference, reference->outputs[0], tolerances));
    // The largest deviation seen of honest engines: 1e-5 of the scale (0.67 here).
    const Tensor other = test_changed(
        reference->outputs[0], [](float v, size_t i) { return v + (i % 2 ? 6e-6F : -6e-6F); });
    CHECK(accepts(*reference, other, tolerances));
  }
}

TEST_CASE("Tolerances: wrong answers fail, with an oracle and without") {
  Reference with_oracle = eager_with_oracle();
  Reference without = test_reference(test_clones(with_oracle.outputs));
  for (const Reference* reference : {&with_oracle, &without}) {
    CAPTURE(reference->exact.size());
    std::vector<Reference> one = test_references(
        test_reference(test_clones(reference->outputs), test_clones(reference->exact)));
    const auto tolerances = derive_tolerances(one, {});
    const Tensor& good = reference->outputs[0];
    const auto wrong = [&](auto change) {
      return !accepts(*reference, test_changed(good, change), tolerances);
    };
    CHECK(wrong([](float, size_t) { return 0.F; }));
    CHECK(wrong([](float v, size_t i) { return i / 10 == 37 ? -v : v; }));     // One row of 64.
    CHECK(wrong([](float v, size_t i) { return i == 411 ? v + 0.01F : v; }));  // One element.
    CHECK(wrong([](float v, size_t) { return v * 1.002F; }));
    CHECK(wrong([](float v, size_t) { return bfloat16_to_float(float_to_bfloat16(v)); }));
    CHECK(wrong([](float v, size_t i) { return i == 0 ? NAN : v; }));
  }
}

TEST_CASE("Tolerances: with an oracle even rounding to float16 fails") {
  const Reference reference = eager_with_oracle();
  const auto tolerances = derive_tolerances(test_references(eager_with_oracle()), {});
  const Tensor rounded = test_changed(
      reference.outputs[0], [](float v, size_t) { return half_to_float(float_to_half(v)); });
  CHECK_FALSE(accepts(reference, rounded, tolerances));
}

TEST_CASE("Tolerances: float64 computed in float32 fails, whatever eager does") {
  Tensor eager = random_tensor(DType::kFloat64, Shape{32}, 1);
  std::vector<double> rounded = to_doubles(eager);
  for (double& v : rounded) v = static_cast<double>(static_cast<float>(v));
  const Tensor candidate = Tensor::from<double>(std::span<const double>(rounded), Shape{32});
  const Reference reference = test_reference(test_list(std::move(eager)));
  for (const Tensor* exact : {&reference.outputs[0], &candidate}) {
    const auto tolerances = derive_tolerances(
        test_references(test_reference(test_clones(reference.outputs), test_list(exact->clone()))),
        {});
    CHECK_FALSE(accepts(reference, candidate, tolerances));
    CHECK(accepts(reference, reference.outputs[0], tolerances));
  }
}

TEST_CASE("Tolerances: half precision may differ by several roundings, not by its size") {
  struct Case {
    DType dtype;
    double rounding;
  };
  for (const Case& c : {Case{DType::kFloat16, 4.9e-4}, Case{DType::kBFloat16, 3.9e-3}}) {
    const Tensor values = random_tensor(c.dtype, Shape{50}, 5);
    const Reference reference = test_reference(test_list(values.clone()));
    const auto tolerances =
        derive_tolerances(test_references(test_reference(test_list(values.clone()))), {});
    const Tolerance tolerance = tolerances[0].tolerance;
    CHECK(tolerance.relative > 4 * c.rounding);
    CHECK(tolerance.relative + tolerance.absolute < 0.2);
    CHECK(accepts(reference, values, tolerances));
    CHECK_FALSE(accepts(reference, Tensor::zeros(c.dtype, Shape{50}), tolerances));
  }
}

TEST_CASE("Tolerances: complex outputs have the tolerance of their parts") {
  const auto tolerance_of = [](DType dtype) {
    return derive_tolerances(
        test_references(test_reference(test_list(Tensor::zeros(dtype, Shape{2})))), {})[0];
  };
  CHECK(tolerance_of(DType::kComplex64).source == "default for complex64");
  CHECK(tolerance_of(DType::kComplex64).tolerance.relative == kFloat32Relative);
  CHECK(tolerance_of(DType::kComplex128).tolerance.relative ==
        tolerance_of(DType::kFloat64).tolerance.relative);
}

}  // namespace
}  // namespace hasten
