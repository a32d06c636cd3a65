// SPDX-License-Identifier: Apache-2.0
// What every plugin that runs ONNX must do alike. Compiled into the test program of each
// with its own HASTEN_TEST_PLUGIN. The models and their formulas: tests/data/make_onnx.py.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "onnx_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT
namespace fs = std::filesystem;

namespace {

Built built(const std::string& name, std::vector<hasten_option> options = {}) {
  Built out = plugin().build(data(name), std::move(options));
  INFO(out.answer().text);
  REQUIRE(out.answer().code == HASTEN_OK);
  return out;
}
using Shape = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr DLDataType kHalf{kDLFloat, 16, 1};

}  // namespace

TEST_CASE("affine: x * 2 + 1 at two batch sizes") {
  const Built affine = built("affine");
  CHECK(affine.arity() == std::pair<size_t, size_t>(1, 1));
  Input one = Input::of<float>({1, 3}, {1, 2, 3});
  Input two = Input::of<float>({2, 3}, {0, -1, 0.5, 4, 5, 6});
  const auto a = affine({one.view()});
  const auto b = affine({two.view()});
  CHECK(shape_vector(a[0]) == Shape{1, 3});
  CHECK(values_of<float>(a[0]) == Floats{3, 5, 7});
  CHECK(shape_vector(b[0]) == Shape{2, 3});
  CHECK(values_of<float>(b[0]) == Floats{1, -1, 2, 9, 11, 13});
  REQUIRE(b[0]->dl_tensor.strides);
  CHECK(b[0]->dl_tensor.strides[0] == 3);
  CHECK(b[0]->dl_tensor.strides[1] == 1);
  CHECK(b[0]->version.major == DLPACK_MAJOR_VERSION);
}

TEST_CASE("inputs and outputs keep the order and the dtypes of the file") {
  Input a = Input::of<float>({2}, {5, 7});
  Input b = Input::of<float>({2}, {1, 2});
  Input c = Input::of<int64_t>({3}, {10, 20, 30});
  CHECK(values_of<float>(built("subtract")({a.view(), b.view()})[0]) == Floats{4, 5});
  const auto swapped = built("swap")({a.view(), c.view()});
  CHECK(values_of<int64_t>(swapped[0]) == std::vector<int64_t>{11, 21, 31});
  CHECK(values_of<float>(swapped[1]) == Floats{10, 14});
}

TEST_CASE("inputs that the graph does not use are still taken, in their place") {
  const Built model = built("unused_inputs");
  REQUIRE(model.arity().first == 4);
  Input a = Input::of<float>({2}, {1, 2}), b = Input::of<float>({2}, {100, 100});
  Input d = Input::of<float>({2}, {30, 40});
  CHECK(values_of<float>(model({a.view(), b.view(), b.view(), d.view()})[0]) == Floats{31, 42});
}

TEST_CASE("more inputs and outputs than fit on the stack") {
  const Built model = built("many");
  REQUIRE(model.arity() == std::pair<size_t, size_t>(20, 20));
  std::vector<Input> in;
  std::vector<DLTensor> views;
  for (int i = 0; i < 20; ++i) {
    in.push_back(Input::of<float>({2}, {static_cast<float>(100 * i), 0}));
  }
  for (Input& i : in) views.push_back(i.view());
  const auto out = model(views);
  for (size_t i = 0; i < 20; ++i) {
    const auto n = static_cast<float>(i);
    CHECK(values_of<float>(out[i]) == Floats{101 * n, n});
  }
}

TEST_CASE("an output that is an input comes back as a copy") {
  const Built model = built("passthrough");
  Input x = Input::of<float>({2, 2}, {1, 2, 3, 4});
  const auto out = model({x.view()});
  REQUIRE(out.size() == 3);
  for (const OwnedTensor& t : out) {
    const auto* at = static_cast<const std::byte*>(data_of(t->dl_tensor));
    const bool inside = at >= x.bytes.data() && at < x.bytes.data() + x.bytes.size();
    CHECK_FALSE(inside);
  }
  std::memset(x.bytes.data(), 0, x.bytes.size());
  CHECK(values_of<float>(out[0]) == Floats{1, 2, 3, 4});
  CHECK(values_of<float>(out[1]) == Floats{1, 2, 3, 4});
  CHECK(values_of<float>(out[2]) == Floats{2, 3, 4, 5});
}

TEST_CASE("outputs outlive the next call and the executable, and are the caller's to write") {
  for (const char* name : {"affine", "fixed"}) {
    std::vector<OwnedTensor> first, second;
    {
      const Built model = built(name);
      Input x = Input::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
      Input zero = Input::of<float>({2, 3}, {0, 0, 0, 0, 0, 0});
      first = model({x.view()});
      second = model({zero.view()});
    }
    const float offset = std::string(name) == "affine" ? 1 : 0;
    CHECK(values_of<float>(first[0])[5] == 12 + offset);
    CHECK(values_of<float>(second[0])[5] == offset);
  }
  const Built model = built("constants");
  Input x = Input::of<float>({1}, {41});
  for (int call = 0; call < 3; ++call) {
    const auto out = model({x.view()});
    CHECK(values_of<float>(out[0]) == Floats{42});
    CHECK(values_of<float>(out[1]) == Floats{1, 2, 3});
    CHECK(values_of<float>(out[2]) == Floats{2, 4, 6});
    for (const OwnedTensor& t : out) std::memset(t->dl_tensor.data, 0xff, bytes_of(t->dl_tensor));
  }
}

TEST_CASE("strided, offset and reversed inputs give what their compact copies give") {
  const Built model = built("two_axes");
  // [[1,2,3],[4,5,6]] as the transpose of what lies in memory.
  Input turned = Input::of<float>({2, 3}, {1, 4, 2, 5, 3, 6});
  turned.strides = {1, 2};
  auto out = model({turned.view()});
  CHECK(values_of<float>(out[0]) == Floats{6, 15});
  CHECK(values_of<float>(out[1]) == Floats{1, 4, 2, 5, 3, 6});

  Input padded = Input::of<float>({2, 2}, {9, 1, 2, 9, 3, 4});
  padded.strides = {3, 1};
  DLTensor view = padded.view();
  view.byte_offset = sizeof(float);
  CHECK(values_of<float>(model({view})[0]) == Floats{3, 7});

  Input reversed = Input::of<float>({1, 3}, {1, 2, 3});
  reversed.strides = {3, -1};
  view = reversed.view();
  view.data = reversed.bytes.data() + 2 * sizeof(float);
  CHECK(values_of<float>(model({view})[1]) == Floats{3, 2, 1});

  Input broadcast = Input::of<float>({2, 2}, {5});
  broadcast.strides = {0, 0};
  CHECK(values_of<float>(model({broadcast.view()})[0]) == Floats{10, 10});

  DLTensor no_strides = Input::of<float>({1, 2}, {1, 2}).view();
  Input plain = Input::of<float>({1, 2}, {1, 2});
  no_strides = plain.view();
  no_strides.strides = nullptr;
  CHECK(values_of<float>(model({no_strides})[0]) == Floats{3});
}

TEST_CASE("empty tensors and scalars are tensors like any other") {
  const Built relu = built("relu");
  Input none = Input::of<float>({0, 3}, {});
  Input some = Input::of<float>({1, 3}, {-1, 0, 1});
  CHECK(shape_vector(relu({none.view()})[0]) == Shape{0, 3});
  CHECK(values_of<float>(relu({some.view()})[0]) == Floats{0, 0, 1});
  CHECK(shape_vector(relu({none.view()})[0]) == Shape{0, 3});

  Input scalar = Input::of<float>({}, {3});
  const auto square = built("scalar")({scalar.view()});
  CHECK(shape_vector(square[0]).empty());
  CHECK(values_of<float>(square[0]) == Floats{9});
}

TEST_CASE("a shape that depends on the values follows them") {
  const Built model = built("non_zero");
  Input x = Input::of<float>({4}, {0, 1, 0, 1}), y = Input::of<float>({4}, {1, 1, 1, 0});
  const auto two = model({x.view()});
  const auto three = model({y.view()});
  CHECK(shape_vector(two[0]) == Shape{1, 2});
  CHECK(values_of<int64_t>(two[0]) == std::vector<int64_t>{1, 3});
  CHECK(values_of<int64_t>(three[0]) == std::vector<int64_t>{0, 1, 2});
  Input zeros = Input::of<float>({4}, {0, 0, 0, 0});
  CHECK(shape_vector(model({zeros.view()})[0]) == Shape{1, 0});
}

TEST_CASE("booleans, small floats and both branches of an If") {
  Input a = Input::of<bool>({4}, {true, true, false, false});
  Input b = Input::of<bool>({4}, {true, false, true, false});
  const auto logic = built("logic")({a.view(), b.view()});
  CHECK(logic[0]->dl_tensor.dtype.code == kDLBool);
  CHECK(values_of<uint8_t>(logic[0]) == std::vector<uint8_t>{0, 1, 0, 0});

  // [1, 2] @ [[1,2],[3,4]] + [0.5,-0.5] = [7.5, 9.5]: 0x4780 and 0x48c0 in binary16.
  Input half = Input::of<uint16_t>({1, 2}, {0x3c00, 0x4000}, kHalf);
  const auto fp16 = built("linear_fp16")({half.view()});
  CHECK(fp16[0]->dl_tensor.dtype.code == kDLFloat);
  CHECK(values_of<uint16_t>(fp16[0]) == std::vector<uint16_t>{0x4780, 0x48c0});
  Input wide = Input::of<double>({1, 2}, {1, 2});
  CHECK(values_of<double>(built("linear_fp64")({wide.view()})[0]) == std::vector<double>{7.5, 9.5});

  const Built branch = built("branch");
  Input positive = Input::of<float>({2}, {1, 2}), negative = Input::of<float>({2}, {-1, -2});
  CHECK(values_of<float>(branch({positive.view()})[0]) == Floats{2, 4});
  CHECK(values_of<float>(branch({negative.view()})[0]) == Floats{-2, -3});
}

TEST_CASE("an input with a value of its own is not asked for") {
  const Built model = built("initializer_input");
  CHECK(model.arity().first == 1);
  Input x = Input::of<float>({2}, {2, 5});
  CHECK(values_of<float>(model({x.view()})[0]) == Floats{6, 15});
}

TEST_CASE("a wrong count, dtype, rank or size is the caller's mistake and names the input") {
  const Built model = built("fixed");
  std::vector<OwnedTensor> out;
  Input good = Input::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(model.run({}, out).code == HASTEN_INVALID_ARGUMENT);
  CHECK(model.run({good.view(), good.view()}, out).code == HASTEN_INVALID_ARGUMENT);
  Input integers = Input::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  Input flat = Input::of<float>({6}, {1, 2, 3, 4, 5, 6});
  Input longer = Input::of<float>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (Input* wrong : {&integers, &flat, &longer}) {
    const Answer answer = model.run({wrong->view()}, out);
    CHECK(answer.code == HASTEN_INVALID_ARGUMENT);
    CHECK(answer.says("input 'x' is float32[2,3], not "));
  }
  CHECK(values_of<float>(model({good.view()})[0]) == Floats{2, 4, 6, 8, 10, 12});
}

TEST_CASE("a file that is no whole model fails by name, and an unknown operator by its own") {
  for (const char* name :
       {"truncated", "random", "empty", "missing_tensor", "missing_operator", "opset_999",
        "external_missing", "external_outside", "string_input", "sequence_output"}) {
    const Built model = plugin().build(data(name));
    INFO(name << ": " << model.answer().code << " " << model.answer().text);
    const bool refused =
        model.answer().code == HASTEN_UNSUPPORTED || model.answer().code == HASTEN_BUILD_FAILED;
    CHECK(refused);
    CHECK(model.answer().says(name));
  }
  CHECK(plugin().build(data("missing_operator")).answer().says("Frobnicate"));
  CHECK(plugin().build(data("missing_tensor")).answer().says("nobody"));
  CHECK(plugin().build(data("opset_999")).answer().says("999"));
  CHECK(plugin().build(data("string_input")).answer().says("'s'"));
  CHECK(plugin().build(data("not_there")).answer().code == HASTEN_INVALID_ARGUMENT);
  CHECK(plugin().build(data("affine"), {}, "pt2").answer().code == HASTEN_UNSUPPORTED);
}

TEST_CASE("a thousand damaged files are read or refused, none ends the process") {
  std::ifstream in(data("external_in_branch"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(whole.size() > 300);
  TemporaryFolder folder;
  const fs::path path = folder.path() / "damaged.onnx";
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 1 + round % 4; ++flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (round % 5 == 0) damaged.resize(random() % damaged.size());
    std::ofstream(path, std::ios::binary) << damaged;
    if (plugin().inspect(path).code != HASTEN_OK) ++refused;
  }
  CHECK(refused > 200);  // Each cut-off one at least.
}

TEST_CASE("an unknown option lists the known ones, a bad value what is wanted") {
  const Answer unknown = plugin().build(data("affine"), {{"thread", "1"}}).answer();
  CHECK(unknown.code == HASTEN_INVALID_ARGUMENT);
  CHECK(unknown.says("'thread'"));
  CHECK(unknown.says("threads"));
  const Answer bad = plugin().build(data("affine"), {{"threads", "many"}}).answer();
  CHECK(bad.code == HASTEN_INVALID_ARGUMENT);
  CHECK(bad.says("many"));
}

TEST_CASE("saved and loaded: weights beside the model come along, the original may go") {
  for (const char* name : {"external", "external_in_branch"}) {
    TemporaryFolder source, saved;
    fs::copy(HASTEN_TEST_DATA, source.path(), fs::copy_options::recursive);
    const std::string path = source.path() / (std::string(name) + ".onnx");
    {
      const Built model = plugin().build(path, {{"threads", "1"}});
      INFO(model.answer().text);
      REQUIRE(model);
      const Answer answer = model.save(saved.path());
      INFO(answer.text);
      REQUIRE(answer.code == HASTEN_OK);
    }
    fs::remove_all(source.path());
    TemporaryFolder again;
    const Built loaded = plugin().load(saved.path());
    INFO(loaded.answer().text);
    REQUIRE(loaded);
    REQUIRE(loaded.save(again.path()).code == HASTEN_OK);
    fs::remove_all(saved.path());
    Input x = Input::of<float>({2}, {1, 2});
    CHECK(values_of<float>(plugin().load(again.path())({x.view()})[0]) == Floats{11, 22});
  }
}

TEST_CASE("a model that was changed after it was built is not saved") {
  TemporaryFolder source, saved;
  const fs::path path = source.path() / "m.onnx";
  fs::copy_file(data("affine"), path);
  const Built model = plugin().build(path);
  REQUIRE(model);
  fs::copy_file(data("branch"), path, fs::copy_options::overwrite_existing);
  CHECK(model.save(saved.path()).says("changed"));
  CHECK(plugin().load(source.path()).answer().code == HASTEN_INVALID_ARGUMENT);
}

TEST_CASE("weights behind a symbolic link out of the folder are refused") {
  TemporaryFolder source, elsewhere;
  fs::copy_file(data("external"), source.path() / "external.onnx");
  fs::copy(std::string(HASTEN_TEST_DATA) + "/weights", elsewhere.path() / "weights");
  fs::create_directory_symlink(elsewhere.path() / "weights", source.path() / "weights");
  const Built model = plugin().build(source.path() / "external.onnx");
  CHECK(model.answer().code == HASTEN_UNSUPPORTED);
  CHECK(model.answer().says("not in the model's folder"));
}

TEST_CASE("paths with spaces, quotes, dollars and other scripts") {
  TemporaryFolder root;
  const fs::path folder = root.path() / "a b'c\"$x 模型-é";
  fs::create_directories(folder / "saved");
  fs::copy_file(data("affine"), folder / "模 型.onnx");
  const Built model = plugin().build(folder / "模 型.onnx");
  INFO(model.answer().text);
  REQUIRE(model);
  REQUIRE(model.save(folder / "saved").code == HASTEN_OK);
  Input x = Input::of<float>({1, 3}, {1, 2, 3});
  CHECK(values_of<float>(plugin().load(folder / "saved")({x.view()})[0]) == Floats{3, 5, 7});
}

TEST_CASE("several threads may run one executable") {
  REQUIRE((plugin().api().traits & HASTEN_TRAIT_CONCURRENT_RUN) != 0);
  const Built model = built("two_axes");
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&model, &wrong, id] {
      for (int call = 0; call < 200; ++call) {
        const auto first = static_cast<float>(id * 1000 + call);
        Input x = Input::of<float>({1 + id, 1}, {});
        x.bytes.resize(sizeof(float) * static_cast<size_t>(1 + id));
        for (int row = 0; row <= id; ++row) {
          const float value = first + static_cast<float>(row);
          std::memcpy(x.bytes.data() + sizeof(float) * static_cast<size_t>(row), &value,
                      sizeof value);
        }
        const auto out = values_of<float>(model({x.view()})[0]);
        for (int row = 0; row <= id; ++row) {
          if (out[static_cast<size_t>(row)] != first + static_cast<float>(row)) ++wrong[id];
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("probe twice: the same facts, with the library's version; destroy takes NULL") {
  const Answer first = plugin().probe(), second = plugin().probe();
  INFO(first.text);
  REQUIRE(first.code == HASTEN_OK);
  CHECK(first.text == second.text);
  CHECK(first.says("\"library_version\":\""));
  plugin().api().destroy(nullptr);
}

TEST_CASE("describe lists onnx and gives every option a default and a help text") {
  const Answer answer = plugin().describe();
  CHECK(answer.says("\"formats\":[\"onnx\"]"));
  CHECK(answer.says("{\"name\":\"threads\",\"type\":\"int\",\"default\":\"0\",\"help\":\""));
  CHECK_FALSE(answer.says("\"help\":\"\""));
}
