// SPDX-License-Identifier: Apache-2.0
// The models are in tests/data/make_torchscript.py; each can be worked out by hand.
#include <doctest/doctest.h>

#include <complex>
#include <limits>

#include "plugin_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT

namespace {

using Values = std::vector<float>;

const Plugin& plugin() {
  static const Plugin opened(HASTEN_TEST_PLUGIN);
  return opened;
}
std::string data(const std::string& name) {
  return std::string(HASTEN_TEST_DATA) + "/" + name + ".pt";
}
Built build(const std::string& name, std::vector<hasten_option> options = {},
            const char* graph = "{}") {
  return plugin().build(data(name), std::move(options), "torchscript", graph);
}
Answer inspect(const std::string& name) { return plugin().inspect(data(name), "torchscript"); }

const std::vector<hasten_option> kEager = {{"mode", "eager"}};
constexpr char kTwoInputs[] =
    R"({"inputs":[{"name":"x","dtype":"float32","axes":[{"min":2,"max":4}]},)"
    R"({"name":"y","dtype":"float32","axes":[{"min":2,"max":4}]}]})";

}  // namespace

TEST_CASE("probe: names the version of libtorch") {
  CHECK(plugin().probe().code == HASTEN_OK);
  CHECK(plugin().probe().says(R"("library_version":"2.)"));
}

TEST_CASE("inspect: tensors are inputs, arguments with defaults are optional, nests are named") {
  CHECK(inspect("affine").text == R"({"inputs":[{"name":"x"}],"outputs":[{"name":"output"}]})");
  CHECK(inspect("defaults").text ==
        R"({"inputs":[{"name":"x"},{"name":"y","optional":true}],"outputs":[{"name":"output"}]})");
  CHECK(inspect("nested").says(
      R"("outputs":[{"name":"output_0"},{"name":"output_1_0"},{"name":"output_1_1_low"},)"
      R"({"name":"output_1_1_high"},{"name":"output_3"}]})"));
  CHECK(inspect("dictionary").says(R"("outputs":[]})"));
}

TEST_CASE("inspect: with known inputs, what only a call shows is named by its keys") {
  CHECK(plugin()
            .inspect(data("dictionary"), "torchscript", kTwoInputs)
            .says(R"("outputs":[{"name":"output_sum_0"},{"name":"output_parts_0"},)"
                  R"({"name":"output_parts_1"}]})"));
}

TEST_CASE("inspect: an argument that is no tensor and has no default is refused by name") {
  const Answer answer = inspect("number_input");
  CHECK(answer.code == HASTEN_UNSUPPORTED);
  CHECK(answer.says("input 'n' is of type int"));
}

TEST_CASE("inspect and build: a file that is no TorchScript is named in one line") {
  for (const std::string name : {"random", "truncated", "missing"}) {
    INFO(name);
    const Answer answer = inspect(name);
    CHECK(answer.code == HASTEN_INVALID_ARGUMENT);
    CHECK(answer.says(name + ".pt is not a readable TorchScript file: "));
    CHECK(answer.text.find('\n') == answer.text.npos);
    CHECK(build(name).answer().code == HASTEN_INVALID_ARGUMENT);
  }
  CHECK(plugin().inspect(data("affine"), "onnx").code == HASTEN_UNSUPPORTED);
}

TEST_CASE("run: every mode gives the same values, at any size") {
  for (const char* mode : {"eager", "script", "frozen"}) {
    INFO(mode);
    const Built built = build("affine", {{"mode", mode}});
    REQUIRE(built);
    CHECK(built.arity() == std::pair<size_t, size_t>{1, 1});
    for (int call = 0; call < 4; ++call) {  // The profiling executor compiles at the third.
      Input two = Input::of<float>({2}, {1, -3}), three = Input::of<float>({1, 3}, {0, 1, 2});
      CHECK(values_of<float>(built({two.view()})[0]) == Values{3, -5});
      CHECK(values_of<float>(built({three.view()})[0]) == Values{1, 3, 5});
    }
  }
}

TEST_CASE("run: strided inputs, inputs without elements and scalars are taken as they are") {
  const Built built = build("affine");
  Input matrix = Input::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  matrix.shape = {3, 2};
  matrix.strides = {1, 3};  // Transposed.
  CHECK(values_of<float>(built({matrix.view()})[0]) == Values{3, 9, 5, 11, 7, 13});
  Input empty = Input::of<float>({0, 3}, {}), scalar = Input::of<float>({}, {4});
  CHECK(shape_vector(built({empty.view()})[0]) == std::vector<int64_t>{0, 3});
  CHECK(values_of<float>(built({scalar.view()})[0]) == Values{9});
}

TEST_CASE("run: every dtype passes through") {
  const Built built = build("same", kEager);
  Input flag = Input::of<bool>({2}, {true, false});
  CHECK(values_of<uint8_t>(built({flag.view()})[0]) == std::vector<uint8_t>{1, 0});
  Input small = Input::of<uint8_t>({2}, {200, 7});
  CHECK(values_of<uint8_t>(built({small.view()})[0]) == std::vector<uint8_t>{200, 7});
  Input large = Input::of<int64_t>({1}, {5'000'000'000});
  CHECK(values_of<int64_t>(built({large.view()})[0]) == std::vector<int64_t>{5'000'000'000});
  Input brain = Input::of<uint16_t>({1}, {0x3f80}, {kDLBfloat, 16, 1});
  const auto outputs = built({brain.view()});
  CHECK(outputs[0]->dl_tensor.dtype.code == kDLBfloat);
  CHECK(values_of<uint16_t>(outputs[0]) == std::vector<uint16_t>{0x3f80});
  Input foreign = Input::of<uint8_t>({1}, {1}, {kDLFloat, 8, 1});
  std::vector<OwnedTensor> none;
  CHECK(built.run({foreign.view()}, none).code == HASTEN_UNSUPPORTED);
}

TEST_CASE("run: nested results come flat, numbers as tensors without axes, None not at all") {
  Input x = Input::of<float>({2}, {0, 10});
  const auto nested = build("nested")({x.view()});
  REQUIRE(nested.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    const float add = static_cast<float>(i + 1);
    CHECK(values_of<float>(nested[i]) == Values{add, 10 + add});
  }
  for (const bool eager : {true, false}) {
    const auto numbers =
        build("numbers", eager ? kEager : std::vector<hasten_option>())({x.view()});
    REQUIRE(numbers.size() == 4);
    CHECK(values_of<int64_t>(numbers[1]) == std::vector<int64_t>{2});
    CHECK(values_of<double>(numbers[2]) == std::vector<double>{3.5});
    CHECK(values_of<uint8_t>(numbers[3]) == std::vector<uint8_t>{0});
    CHECK(shape_vector(numbers[1]).empty());
  }
}

TEST_CASE("build: outputs that only a call shows are counted with the graph's inputs") {
  const Built built = build("dictionary", {}, kTwoInputs);
  REQUIRE(built);
  CHECK(built.arity() == std::pair<size_t, size_t>{2, 3});
  Input x = Input::of<float>({2}, {1, 2}), y = Input::of<float>({2}, {10, 20});
  const auto outputs = built({x.view(), y.view()});
  CHECK(values_of<float>(outputs[0]) == Values{11, 22});
  CHECK(values_of<float>(outputs[1]) == Values{1, 2});
  CHECK(values_of<float>(outputs[2]) == Values{10, 20});
  const Built blind = build("dictionary");
  CHECK(blind.answer().code == HASTEN_UNSUPPORTED);
  CHECK(blind.answer().says("Dict[str, List[Tensor]] shows in a call only"));
}

TEST_CASE("build: inputs are found by name, the others keep their defaults") {
  Input x = Input::of<float>({2}, {1, 2}), y = Input::of<float>({2}, {10, 20});
  const Built both = build("defaults", {}, kTwoInputs);
  CHECK(values_of<float>(both({x.view(), y.view()})[0]) == Values{12, 24});
  const Built swapped = build("defaults", {},
                              R"({"inputs":[{"name":"y","dtype":"float32","axes":[{"min":2}]},)"
                              R"({"name":"x","dtype":"float32","axes":[{"min":2}]}]})");
  CHECK(values_of<float>(swapped({x.view(), y.view()})[0]) == Values{21, 42});
  const Built one = build("defaults", {},
                          R"({"inputs":[{"name":"image","dtype":"float32","axes":[{"min":2}]}]})");
  CHECK(values_of<float>(one({x.view()})[0]) == Values{2, 4});
}

TEST_CASE("run: another count, dtype or rank than the graph's names the input") {
  const Built built = build("defaults", {}, kTwoInputs);
  Input x = Input::of<float>({2}, {1, 2}), whole = Input::of<int64_t>({2}, {1, 2}),
        matrix = Input::of<float>({1, 2}, {1, 2});
  std::vector<OwnedTensor> none;
  CHECK(built.run({x.view()}, none).code == HASTEN_INVALID_ARGUMENT);
  const Answer dtype = built.run({x.view(), whole.view()}, none);
  CHECK(dtype.code == HASTEN_INVALID_ARGUMENT);
  CHECK(dtype.says("input 'y' is float32[?], not int64[2]"));
  const Answer rank = built.run({matrix.view(), x.view()}, none);
  CHECK(rank.code == HASTEN_INVALID_ARGUMENT);
  CHECK(rank.says("input 'x' is float32[?], not float32[1,2]"));
}

TEST_CASE("run: what torch throws is one sentence") {
  Input x = Input::of<float>({2}, {1, 2});
  for (const auto& options : {kEager, std::vector<hasten_option>{{"mode", "script"}}}) {
    std::vector<OwnedTensor> none;
    const Answer answer = build("raises", options).run({x.view()}, none);
    CHECK(answer.code == HASTEN_RUN_FAILED);
    CHECK(answer.says("no such thing as x"));
    CHECK(answer.text.find('\n') == answer.text.npos);
  }
}

TEST_CASE("build: a model in training mode is refused with the remedy") {
  const Answer answer = build("training").answer();
  CHECK(answer.code == HASTEN_UNSUPPORTED);
  CHECK(answer.text == "the model is in training mode; call model.eval() before it is saved");
}

TEST_CASE("build: options are checked, unknown ones list the known") {
  CHECK(build("affine", {{"mode", "fast"}}).answer().says("one of eager, script, frozen"));
  const Answer answer = build("affine", {{"speed", "1"}}).answer();
  CHECK(answer.code == HASTEN_INVALID_ARGUMENT);
  CHECK(answer.says("known options: mode, precision, threads, layout, denormals_as_zero"));
}

TEST_CASE("eager: writes its inputs and keeps state as the model does") {
  Input x = Input::of<float>({2}, {1, 2});
  const Built writes = build("writes", kEager);
  CHECK(values_of<float>(writes({x.view()})[0]) == Values{3, 5});
  CHECK(values_of<float>(writes({x.view()})[0]) == Values{5, 9});
  Input zero = Input::of<float>({1}, {0});
  const Built state = build("state", kEager);
  CHECK(values_of<float>(state({zero.view()})[0]) == Values{0});
  CHECK(values_of<float>(state({zero.view()})[0]) == Values{1});
}

TEST_CASE("run: an output that is the input itself is a copy, but for eager") {
  Input x = Input::of<float>({2}, {1, 2});
  const DLTensor view = x.view();
  CHECK(build("same", kEager)({view})[0]->dl_tensor.data == view.data);
  CHECK(build("same")({view})[0]->dl_tensor.data != view.data);
}

TEST_CASE("run: lazily conjugated results are computed, views keep their strides") {
  Input z = Input::of<float>({1}, {}, {kDLComplex, 64, 1});
  z.bytes.resize(8);
  const std::complex<float> value(1, 2);
  std::memcpy(z.bytes.data(), &value, sizeof value);
  const auto outputs = build("conjugate")({z.view()});
  CHECK(outputs[0]->dl_tensor.dtype.code == kDLComplex);
  std::complex<float> found;
  std::memcpy(&found, data_of(outputs[0]->dl_tensor), sizeof found);
  CHECK(found == std::complex<float>(1, -2));
  CHECK(values_of<float>(outputs[1]) == Values{1});
  CHECK(values_of<float>(outputs[2]) == Values{-2});
  Input matrix = Input::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto transposed = build("transposed", kEager)({matrix.view()});
  CHECK(shape_vector(transposed[0]) == std::vector<int64_t>{3, 2});
  CHECK(transposed[0]->dl_tensor.strides[0] == 1);
  CHECK(values_of<float>(transposed[0]) == Values{2, 5, 3, 6, 4, 7});
}

TEST_CASE("run: folded convolutions and images by channel give the same values") {
  Input image = Input::of<float>({1, 1, 3, 4}, {5, 5, 5, 2, 5, 5, 5, 2, 5, 5, 5, 2});
  // Means 5 and 4; minus 1, halved.
  const Values expected = {2, 1.5, 2, 1.5};
  for (const char* mode : {"eager", "script", "frozen"}) {
    for (const char* layout : {"contiguous", "channels_last"}) {
      for (const char* model : {"image", "frozen"}) {
        INFO(mode << " " << layout << " " << model);
        const Built built = build(model, {{"mode", mode}, {"layout", layout}});
        REQUIRE(built);
        const auto outputs = built({image.view()});
        const Values found = values_of<float>(outputs[0]);
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("precision=float64: constants and dtypes that the graph names are in double too") {
  Input one = Input::of<float>({1}, {1});
  const auto native = build("third", kEager)({one.view()});
  CHECK(values_of<float>(native[0]) == Values{1.0F / 3.0F});
  for (const char* mode : {"eager", "script", "frozen"}) {
    INFO(mode);
    const auto exact = build("third", {{"mode", mode}, {"precision", "float64"}})({one.view()});
    CHECK(values_of<double>(exact[0]) == std::vector<double>{1.0 / 3.0});
  }
  const auto image = Input::of<float>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  Input copy = image;
  const auto exact = build("image", {{"mode", "eager"}, {"precision", "float64"}})({copy.view()});
  // 1/9 is stored as float32: the nine products carry its error, so only the type is exact.
  CHECK(values_of<double>(exact[0])[0] == doctest::Approx(2).epsilon(1e-6));
}

TEST_CASE("denormals_as_zero: for the call only") {
  const float denormal = 1e-39F;
  Input x = Input::of<float>({1}, {denormal});
  const Built built = build("branch", {{"denormals_as_zero", "true"}, {"threads", "1"}});
  // The sum counts as zero, so x - 1 is taken.
  CHECK(values_of<float>(built({x.view()})[0]) == Values{-1});
  volatile float half = denormal;
  half = half / 2;
  CHECK(half > 0);
  CHECK(values_of<float>(build("branch")({x.view()})[0])[0] > 0);
}

TEST_CASE("save and load: the same values, options and checks; outputs outlive the executable") {
  const TemporaryFolder folder;
  const std::string dir = folder.path();
  Input x = Input::of<float>({2}, {1, 2}), y = Input::of<float>({2}, {10, 20});
  CHECK(build("dictionary", {{"mode", "script"}}, kTwoInputs).save(dir).code == HASTEN_OK);
  std::vector<OwnedTensor> outputs;
  {
    const Built loaded = plugin().load(dir);
    REQUIRE(loaded);
    outputs = loaded({x.view(), y.view()});
    std::vector<OwnedTensor> none;
    CHECK(loaded.run({x.view()}, none).code == HASTEN_INVALID_ARGUMENT);
  }
  CHECK(values_of<float>(outputs[0]) == Values{11, 22});
  std::filesystem::remove(folder.path() / "options.txt");
  const Answer answer = plugin().load(dir).answer();
  CHECK(answer.code == HASTEN_INVALID_ARGUMENT);
  CHECK(answer.says("options.txt"));
}

TEST_CASE("save: a folder that is not there is an error, not a crash") {
  CHECK(build("affine").save("/nonexistent/folder").code == HASTEN_INVALID_ARGUMENT);
}
