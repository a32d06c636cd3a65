// SPDX-License-Identifier: Apache-2.0
#include "package_inputs.h"

#include <doctest/doctest.h>

#include "plugin_test_support.h"

using namespace hasten;  // NOLINT
using hasten::test::Input;

namespace {

const std::string kText =
    "hasten-aoti 1\n"
    "torch 2.13.0\n"
    "cpu avx2 fma\n"
    "input my%20x float32 B:1:64:1 3\n"
    "input state bfloat16 2 B:1:64:1 T:4::2\n"
    "output y\n";

PackageInputs parsed() { return PackageInputs::parse(kText, "model.inputs"); }

std::string refusal(std::vector<Input> inputs, size_t n_outputs = 1) {
  std::vector<DLTensor> views;
  for (Input& input : inputs) views.push_back(input.view());
  try {
    parsed().check(views, n_outputs);
  } catch (const PluginError& e) {
    CHECK(e.code == HASTEN_INVALID_ARGUMENT);
    return e.what();
  }
  return "";
}

Input x(int64_t rows, int64_t columns = 3) {
  Input input = Input::of<float>({}, {});
  input.shape = {rows, columns};
  input.strides = {columns, 1};
  return input;
}
Input state(int64_t batch, int64_t length) {
  Input input = Input::of<uint16_t>({}, {}, {kDLBfloat, 16, 1});
  input.shape = {2, batch, length};
  input.strides = {batch * length, length, 1};
  return input;
}

}  // namespace

TEST_CASE("PackageInputs: reads names, axes, outputs and instruction sets") {
  const PackageInputs inputs = parsed();
  REQUIRE(inputs.inputs.size() == 2);
  CHECK(inputs.inputs[0].name == "my x");
  CHECK(inputs.inputs[0].axes[0].max == 64);
  CHECK(inputs.inputs[1].axes[2].max == -1);
  CHECK(inputs.outputs == std::vector<std::string>{"y"});
  CHECK(inputs.missing_on("flags : avx fma avx2") == "");
  CHECK(inputs.missing_on("flags : avx fma") == "avx2");
}

TEST_CASE("PackageInputs: sizes within the ranges pass") {
  CHECK(refusal({x(1), state(1, 4)}) == "");
  CHECK(refusal({x(64), state(64, 1000)}) == "");
}

TEST_CASE("PackageInputs: a size outside the range, another static size, a step between") {
  CHECK(refusal({x(65), state(65, 4)}) == "input 'my x' is 1 to 64 at axis 0, not 65");
  CHECK(refusal({x(0), state(0, 4)}) == "input 'my x' is 1 to 64 at axis 0, not 0");
  CHECK(refusal({x(1, 4), state(1, 4)}) == "input 'my x' is 3 at axis 1, not 4");
  CHECK(refusal({x(1), state(1, 5)}) ==
        "input 'state' is 4 to any size in steps of 2 at axis 2, not 5");
}

TEST_CASE("PackageInputs: axes of one symbol have one size") {
  CHECK(refusal({x(2), state(3, 4)}) == "input 'state' is 2 at axis 1 as another input is, not 3");
}

TEST_CASE("PackageInputs: another count, dtype or rank is refused") {
  CHECK(refusal({x(1)}) == "takes 2 inputs and gives 1 outputs, not 1 and 1");
  CHECK(refusal({x(1), state(1, 4)}, 2) == "takes 2 inputs and gives 1 outputs, not 2 and 2");
  CHECK(refusal({x(1), x(1)}) == "input 'state' is bfloat16, not float32");
  CHECK(refusal({x(1), Input::of<uint16_t>({}, {0}, {kDLBfloat, 16, 1})}) ==
        "input 'state' is of 3 axes, not 0");
}

TEST_CASE("PackageInputs: a file that is no such list is refused by its name") {
  for (const std::string text : {"", "something else", "hasten-aoti 1\ninput x float32 -3",
                                 "hasten-aoti 1\ninput x float32 B:1:2"}) {
    INFO(text);
    CHECK_THROWS_AS(PackageInputs::parse(text, "f"), PluginError);
  }
  CHECK_THROWS_WITH_AS(PackageInputs::read("/nonexistent/f"),
                       "/nonexistent/f: cannot be read; it belongs beside the package",
                       PluginError);
}
