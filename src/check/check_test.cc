// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include "check/test_tensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hasten {
namespace {

const std::vector<std::string> kNames = {"logits", "state"};

CheckRecord check_one(Tensor actual, Tensor expected, double absolute, double relative = 0) {
  const Reference reference = test_reference(test_list(std::move(expected)));
  const std::vector<Tensor> outputs = test_list(std::move(actual));
  return check_outputs(outputs, reference, test_tolerance(absolute, relative), kNames);
}

TEST_CASE("check_outputs: equal outputs pass, and the worst deviation is told all the same") {
  const CheckRecord record =
      check_one(test_tensor<float>({1, 2.5F}), test_tensor<float>({1, 2}), 1);
  CHECK(record.passed);
  CHECK(record.rule.empty());
  CHECK(record.message.empty());
  CHECK(record.checked == std::vector<std::string>{"sample 0"});
  REQUIRE(record.worst);
  CHECK(record.worst->output == "logits");
  CHECK(record.worst->index == Shape{1});
  CHECK(record.worst->absolute == 0.5);
  CHECK(record.worst->relative == 0.25);
  CHECK(record.worst->limit == 1);
}

TEST_CASE("check_outputs: a wrong value is named with its place, limit and extent") {
  const CheckRecord record = check_one(test_tensor<float>({1, 2, 3, 4.5F}, {2, 2}),
                                       test_tensor<float>({1, 2, 3, 4}, {2, 2}), 0.1, 0.01);
  CHECK_FALSE(record.passed);
  CHECK(record.rule == "values");
  CHECK(record.message ==
        "sample 0: output 'logits' is off by 0.5 at [1,1] (limit 0.14): 4.5, not 4; "
        "1 of 4 elements are outside");
}

TEST_CASE("check_outputs: NaN and infinity must stand where the original has them") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(check_one(test_tensor<float>({NAN, inf, -inf, 1}), test_tensor<float>({NAN, inf, -inf, 1}),
                  1e-3)
            .passed);
  struct Case {
    float actual, expected;
  };
  for (const Case& c :
       {Case{NAN, 1}, Case{1, NAN}, Case{inf, 1}, Case{1, inf}, Case{-inf, inf}, Case{NAN, inf}}) {
    CAPTURE(c.actual);
    const CheckRecord record =
        check_one(test_tensor<float>({c.actual}), test_tensor<float>({c.expected}), 1e30);
    CHECK_FALSE(record.passed);
    CHECK(record.rule == "non-finite");
  }
  const CheckRecord record = check_one(test_tensor<float>({0, NAN}), test_tensor<float>({0, 1}), 1);
  CHECK(record.message ==
        "sample 0: output 'logits' is nan, not 1 at [1]; 1 of 2 elements are outside");
}

TEST_CASE("check_outputs: number, dtype and shape come before values") {
  const Reference reference =
      test_reference(test_list(test_tensor<float>({1, 2}), test_tensor<int64_t>({3})));
  const std::vector<OutputTolerance> tolerances(2);
  struct Case {
    std::vector<Tensor> actual;
    std::string rule, part;
  };
  std::vector<Case> cases;
  cases.push_back({test_list(test_tensor<float>({1, 2})), "outputs", "1 outputs, not 2"});
  cases.push_back({test_list(test_tensor<double>({9, 9}), test_tensor<int64_t>({3})), "dtype",
                   "output 'logits' is float64, not float32"});
  cases.push_back({test_list(test_tensor<float>({1, 2}), test_tensor<int32_t>({3})), "dtype",
                   "output 'state' is int32, not int64"});
  cases.push_back({test_list(test_tensor<float>({9, 9}, {1, 2}), test_tensor<int64_t>({3})),
                   "shape", "output 'logits' is [1,2], not [2]"});
  cases.push_back({test_list(test_tensor<int64_t>({3}), test_tensor<float>({1, 2})), "dtype",
                   "output 'logits' is int64, not float32"});
  for (const Case& c : cases) {
    CAPTURE(c.part);
    const CheckRecord record = check_outputs(c.actual, reference, tolerances, kNames);
    CHECK_FALSE(record.passed);
    CHECK(record.rule == c.rule);
    CHECK(record.message == "sample 0: " + c.part);
    CHECK_FALSE(record.worst);
  }
}

TEST_CASE("check_outputs: the worst of several outputs is the one that uses up most of its limit") {
  const Reference reference =
      test_reference(test_list(test_tensor<float>({1}), test_tensor<float>({1})));
  const std::vector<Tensor> actual =
      test_list(test_tensor<float>({1.5F}), test_tensor<float>({1.25F}));
  std::vector<OutputTolerance> tolerances(2);
  tolerances[0].tolerance.absolute = 1;
  tolerances[1].tolerance.absolute = 0.3;
  const CheckRecord record = check_outputs(actual, reference, tolerances, {});
  CHECK(record.passed);
  CHECK(record.worst->output == "output 1");
}

TEST_CASE("check_outputs: an integer off by one fails under any tolerance") {
  const CheckRecord record =
      check_one(test_tensor<int64_t>({705032704}), test_tensor<int64_t>({5000000000}), 1e12);
  CHECK_FALSE(record.passed);
  CHECK(record.rule == "values");
  CHECK(record.worst->absolute == 4294967296.0);
}

TEST_CASE("check_outputs: an output without elements agrees and has no deviation") {
  const CheckRecord record = check_one(Tensor::zeros(DType::kFloat32, Shape{0, 4}),
                                       Tensor::zeros(DType::kFloat32, Shape{0, 4}), 0);
  CHECK(record.passed);
  CHECK_FALSE(record.worst);
  CHECK_FALSE(check_one(Tensor::zeros(DType::kFloat32, Shape{0, 4}),
                        Tensor::zeros(DType::kFloat32, Shape{4, 0}), 0)
                  .passed);
}

TEST_CASE("merge: passes only if all passed, and keeps the first failure and the worst of all") {
  const CheckRecord good = check_one(test_tensor<float>({1.5F}), test_tensor<float>({1}), 1);
  CheckRecord bad = check_one(test_tensor<float>({3}), test_tensor<float>({1}), 0.5);
  bad.checked = {"sample 1"};
  CheckRecord later = bad;
  later.rule = "shape";
  const CheckRecord all = merge(std::vector<CheckRecord>{good, bad, later});
  CHECK_FALSE(all.passed);
  CHECK(all.rule == "values");
  CHECK(all.message == bad.message);
  CHECK(all.worst->absolute == 2);
  CHECK(all.checked == std::vector<std::string>{"sample 0", "sample 1", "sample 1"});
  const CheckRecord passed = merge(std::vector<CheckRecord>{good, good});
  CHECK(passed.passed);
  CHECK(passed.worst->absolute == 0.5);
}

TEST_CASE("merge: nothing checked is not passed") {
  const CheckRecord none = merge({});
  CHECK_FALSE(none.passed);
  CHECK(none.rule == "nothing checked");
}

}  // namespace
}  // namespace hasten
