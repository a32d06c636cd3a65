// SPDX-License-Identifier: Apache-2.0
#include "check/metamorphic.h"

#include "check/test_tensors.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hasten {
namespace {

const std::vector<std::string> kInputs = {"x", "h"};
const std::vector<std::string> kOutputs = {"y", "z"};

TEST_CASE("check_repeat: two calls agree within the tolerance, not beyond") {
  const auto first = test_list(test_tensor<float>({1, 2}));
  const auto close = test_list(test_tensor<float>({1, 2.0625F}));
  const auto far = test_list(test_tensor<float>({1, 2.25F}));
  CHECK(check_repeat(first, first, test_tolerance(0), kOutputs).passed);
  CHECK(check_repeat(first, close, test_tolerance(0.1), kOutputs).passed);
  const CheckRecord record = check_repeat(first, far, test_tolerance(0.1), kOutputs);
  CHECK_FALSE(record.passed);
  CHECK(record.rule == "repeat");
  CHECK(record.message ==
        "the same call again: output 'y' is off by 0.25 at [1] (limit 0.1): 2.25, not 2; "
        "1 of 2 elements are outside");
}

TEST_CASE("check_split: parts of a batch, joined, equal the whole") {
  const auto whole = test_list(test_tensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  std::vector<std::vector<Tensor>> parts;
  parts.push_back(test_list(test_tensor<float>({1, 2}, {1, 2})));
  parts.push_back(test_list(test_tensor<float>({3, 4, 5, 6}, {2, 2})));
  CHECK(check_split(whole, parts, {0}, test_tolerance(0), kOutputs).passed);
  parts[1] = test_list(test_tensor<float>({3, 4, 5, 9}, {2, 2}));
  const CheckRecord record = check_split(whole, parts, {0}, test_tolerance(0.1), kOutputs);
  CHECK_FALSE(record.passed);
  CHECK(record.rule == "split");
  CHECK(record.worst->index == Shape{2, 1});
  CHECK(record.message.find("the batch in 2 parts: output 'y' is off by 3 at [2,1]") == 0);
}

TEST_CASE("check_split: the batch may lie on another axis, and outputs without one are left out") {
  const auto whole = test_list(test_tensor<float>({1, 2, 3, 4}, {2, 2}), test_tensor<float>({7}));
  std::vector<std::vector<Tensor>> parts;
  parts.push_back(test_list(test_tensor<float>({1, 3}, {2, 1}), test_tensor<float>({8})));
  parts.push_back(test_list(test_tensor<float>({2, 4}, {2, 1}), test_tensor<float>({9})));
  const std::vector<OutputTolerance> tolerances(2);
  CHECK(check_split(whole, parts, {1, std::nullopt}, tolerances, kOutputs).passed);
}

TEST_CASE("check_split: parts that do not fit together are told as such") {
  const auto whole = test_list(test_tensor<float>({1, 2, 3}));
  std::vector<std::vector<Tensor>> parts;
  parts.push_back(test_list(test_tensor<float>({1})));
  parts.push_back(test_list(test_tensor<float>({2})));
  const CheckRecord shorter = check_split(whole, parts, {0}, test_tolerance(0), kOutputs);
  CHECK_FALSE(shorter.passed);
  CHECK(shorter.message.find("output 'y' is shape [2], not [3]") != std::string::npos);
  parts[1] = test_list(test_tensor<float>({2, 3}), test_tensor<float>({4}));
  CHECK_FALSE(check_split(whole, parts, {0}, test_tolerance(0), kOutputs).passed);
  parts[1] = test_list(test_tensor<double>({2, 3}));
  CHECK_FALSE(check_split(whole, parts, {0}, test_tolerance(0), kOutputs).passed);
}

TEST_CASE("check_equal_rows: equal rows in give equal rows out, or the wrong row is named") {
  const auto good = test_list(test_tensor<float>({1, 2, 1, 2, 1, 2}, {3, 2}));
  CHECK(check_equal_rows(good, {0}, test_tolerance(0), kOutputs).passed);
  const auto bad = test_list(test_tensor<float>({1, 2, 1, 2, 1, 0}, {3, 2}));
  const CheckRecord record = check_equal_rows(bad, {0}, test_tolerance(0.5), kOutputs);
  CHECK_FALSE(record.passed);
  CHECK(record.rule == "equal rows");
  CHECK(record.worst->index == Shape{2, 1});
  // Along the other axis these rows differ from the start.
  CHECK_FALSE(check_equal_rows(good, {1}, test_tolerance(0.5), kOutputs).passed);
  CHECK(check_equal_rows(good, {std::nullopt}, test_tolerance(0), kOutputs).passed);
}

TEST_CASE("check_equal_rows: none or one row says nothing") {
  const auto none = test_list(Tensor::zeros(DType::kFloat32, Shape{0, 2}));
  const auto one = test_list(test_tensor<float>({1, 2}, {1, 2}));
  CHECK(check_equal_rows(none, {0}, test_tolerance(0), kOutputs).passed);
  CHECK(check_equal_rows(one, {0}, test_tolerance(0), kOutputs).passed);
}

TEST_CASE("check_side_effects: a candidate does what the original does, and nothing besides") {
  const SideEffects none;
  struct Case {
    SideEffects own, original;
    std::string rule, message;
  };
  SideEffects writes, writes_other, aliases, changes;
  writes.written_inputs = {1};
  writes_other.written_inputs = {0, 1};
  aliases.aliases = {{1, 0}};
  changes.first_result_changed = true;
  const Case cases[] = {
      {none, none, "", ""},
      {writes, writes, "", ""},
      {aliases, aliases, "", ""},
      {changes, changes, "", ""},
      {none, aliases, "", ""},
      {none, changes, "", ""},
      {changes, none, "results stay", "the result of one call changed during the next"},
      {aliases, none, "no alias", "output 'z' lies in the memory of input 'x'"},
      {writes, none, "inputs stay", "it writes into input 'h', which the original only reads"},
      {none, writes, "inputs stay", "the original writes into input 'h', this does not"},
      {writes_other, writes, "inputs stay",
       "it writes into input 'x', which the original only reads"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.message);
    const CheckRecord record = check_side_effects(c.own, c.original, kInputs, kOutputs);
    CHECK(record.passed == c.rule.empty());
    CHECK(record.rule == c.rule);
    CHECK(record.message == c.message);
  }
}

}  // namespace
}  // namespace hasten
