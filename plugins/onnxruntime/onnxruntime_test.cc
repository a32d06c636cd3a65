// SPDX-License-Identifier: Apache-2.0
// What is ONNX Runtime's own; what it shares with other engines is in onnx_engine_test.cc.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "onnx_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT

TEST_CASE("inspect: names, dtypes, fixed sizes, symbols and unknown axes as the file has them") {
  CHECK(plugin().inspect(data("affine")).text ==
        R"({"inputs":[{"name":"x","dtype":"float32","shape":["B",3]}],)"
        R"("outputs":[{"name":"y","dtype":"float32","shape":["B",3]}]})");
  CHECK(plugin().inspect(data("swap")).text ==
        R"({"inputs":[{"name":"a","dtype":"float32","shape":[2]},)"
        R"({"name":"b","dtype":"int64","shape":[3]}],)"
        R"("outputs":[{"name":"next","dtype":"int64","shape":[3]},)"
        R"({"name":"doubled","dtype":"float32","shape":[2]}]})");
  CHECK(plugin()
            .inspect(data("scalar"))
            .says(R"("inputs":[{"name":"x","dtype":"float32","shape":[]}])"));
  CHECK(plugin().inspect(data("unnamed_axis")).says(R"("shape":["","",2])"));
  CHECK(
      plugin().inspect(data("unknown_rank")).says(R"("inputs":[{"name":"x","dtype":"float32"}])"));
  CHECK(plugin().inspect(data("initializer_input")).says(R"("inputs":[{"name":"x",)"));
  CHECK_FALSE(plugin().inspect(data("initializer_input")).says(R"("name":"k")"));
  const Answer strings = plugin().inspect(data("string_input"));
  CHECK(strings.says(R"({"name":"s","foreign_dtype":"string","shape":["N"]})"));
}

TEST_CASE("inspect: every dtype under NumPy's name") {
  const Answer answer = plugin().inspect(data("dtypes"));
  for (const std::string name : {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64",
                                 "int64", "float16", "bfloat16", "float32", "float64", "bool"}) {
    INFO(name);
    CHECK(answer.says(R"({"name":"in_)" + name + R"(","dtype":")" + name + R"(","shape":["N"]})"));
  }
}

TEST_CASE("inspect: what is no tensor, no ONNX or another format is refused by name") {
  const Answer sequence = plugin().inspect(data("sequence_output"));
  CHECK(sequence.code == HASTEN_UNSUPPORTED);
  CHECK(sequence.says("output 'parts' is a sequence"));
  CHECK(plugin().inspect(data("random")).code == HASTEN_BUILD_FAILED);
  CHECK(plugin().inspect(data("truncated")).code == HASTEN_BUILD_FAILED);
  CHECK(plugin().inspect(data("external_outside")).code == HASTEN_UNSUPPORTED);
  CHECK(plugin().inspect(data("not_there")).code == HASTEN_INVALID_ARGUMENT);
  CHECK(plugin().inspect(data("affine"), "pt2").code == HASTEN_UNSUPPORTED);
}

TEST_CASE("every dtype passes through unchanged, bit by bit") {
  const Built model = plugin().build(data("dtypes"));
  INFO(model.answer().text);
  REQUIRE(model);
  const DLDataType half{kDLFloat, 16, 1}, bfloat{kDLBfloat, 16, 1};
  std::vector<Input> in;
  in.push_back(Input::of<uint8_t>({2}, {0, 255}));
  in.push_back(Input::of<int8_t>({2}, {-128, 127}));
  in.push_back(Input::of<uint16_t>({2}, {0, 65535}));
  in.push_back(Input::of<int16_t>({2}, {-32768, 32767}));
  in.push_back(Input::of<uint32_t>({2}, {0, 4294967295U}));
  in.push_back(Input::of<int32_t>({2}, {std::numeric_limits<int32_t>::min(), 1}));
  in.push_back(Input::of<uint64_t>({2}, {1, std::numeric_limits<uint64_t>::max()}));
  in.push_back(Input::of<int64_t>({2}, {5000000000, -1}));
  in.push_back(Input::of<uint16_t>({2}, {0x7bff, 0x0001}, half));
  in.push_back(Input::of<uint16_t>({2}, {0x3f80, 0x7f7f}, bfloat));
  in.push_back(Input::of<float>({2}, {1e-40F, INFINITY}));
  in.push_back(Input::of<double>({2}, {1e-310, 1.0 / 3}));
  in.push_back(Input::of<bool>({2}, {true, false}));
  std::vector<DLTensor> views;
  for (Input& i : in) views.push_back(i.view());
  const auto out = model(views);
  for (size_t i = 0; i < in.size(); ++i) {
    INFO(i);
    const DLTensor& t = out[i]->dl_tensor;
    CHECK(t.dtype.code == in[i].type.code);
    CHECK(t.dtype.bits == in[i].type.bits);
    CHECK(shape_vector(out[i]) == std::vector<int64_t>{2, 1});
    CHECK(std::memcmp(data_of(t), in[i].bytes.data(), in[i].bytes.size()) == 0);
  }
}

TEST_CASE("weights in the field of their type are what they say, in every dtype") {
  const Built model = plugin().build(data("typed_constants"));
  REQUIRE(model);
  Input x = Input::of<float>({1}, {1});
  const auto out = model({x.view()});
  REQUIRE(out.size() == 14);
  CHECK(values_of<uint8_t>(out[1]) == std::vector<uint8_t>{1, 2});
  CHECK(values_of<int16_t>(out[4]) == std::vector<int16_t>{1, 2});
  CHECK(values_of<uint32_t>(out[5]) == std::vector<uint32_t>{1, 2});
  CHECK(values_of<uint64_t>(out[7]) == std::vector<uint64_t>{1, 2});
  CHECK(values_of<uint16_t>(out[9]) == std::vector<uint16_t>{0x3c00, 0x4000});
  CHECK(values_of<uint16_t>(out[10]) == std::vector<uint16_t>{0x3f80, 0x4000});
  CHECK(values_of<double>(out[12]) == std::vector<double>{1, 2});
}

TEST_CASE("int64 sums beyond 32 bits are exact") {
  const Built model = plugin().build(data("add_int64"));
  REQUIRE(model);
  Input a = Input::of<int64_t>({2}, {5000000000, 1}), b = Input::of<int64_t>({2}, {3000000000, 2});
  CHECK(values_of<int64_t>(model({a.view(), b.view()})[0]) == std::vector<int64_t>{8000000000, 3});
}

TEST_CASE("bfloat16 arithmetic is unsupported, not a failed build") {
  CHECK(plugin().build(data("linear_bf16")).answer().code == HASTEN_UNSUPPORTED);
}

TEST_CASE("an unknown rank takes any") {
  const Built model = plugin().build(data("unknown_rank"));
  REQUIRE(model);
  Input flat = Input::of<float>({2}, {-1, 1}), deep = Input::of<float>({1, 1, 1}, {-2});
  CHECK(values_of<float>(model({flat.view()})[0]) == std::vector<float>{0, 1});
  CHECK(shape_vector(model({deep.view()})[0]) == std::vector<int64_t>{1, 1, 1});
}

TEST_CASE("every option is taken and gives the same values") {
  const std::vector<std::vector<hasten_option>> all = {
      {{"graph", "disable"}},     {{"graph", "basic"}},
      {{"graph", "extended"}},    {{"threads", "2"}},
      {{"spinning", "false"}},    {{"arena", "false"}},
      {{"mem_pattern", "false"}}, {{"execution", "parallel"}, {"threads", "2"}}};
  Input x = Input::of<float>({1, 3}, {1, 2, 3});
  for (const auto& options : all) {
    INFO(options[0].key << "=" << options[0].value);
    const Built model = plugin().build(data("affine"), options);
    REQUIRE(model);
    CHECK(values_of<float>(model({x.view()})[0]) == std::vector<float>{3, 5, 7});
  }
}

TEST_CASE("denormals count as zero only where asked for, and the caller's mode stays") {
  const auto first_of = [&](std::vector<hasten_option> options) {
    const Built doubled = plugin().build(data("fixed"), std::move(options));
    Input two = Input::of<float>({2, 3}, {1e-39F, 0, 0, 0, 0, 0});
    return values_of<float>(doubled({two.view()})[0])[0];
  };
  const volatile float tiny = 1e-39F;
  CHECK(first_of({{"denormals_as_zero", "true"}}) == 0);
  CHECK(tiny * 2 > 0);
  CHECK(first_of({}) > 0);
  CHECK(first_of({{"denormals_as_zero", "true"}}) == 0);
  CHECK(tiny * 2 > 0);
}

TEST_CASE("candidates: an ONNX file has a baseline and an oracle, another format has neither") {
  const Answer onnx = plugin().candidates("onnx", 2);
  CHECK(onnx.says(R"({"role":"baseline","config":{}})"));
  CHECK(onnx.says(R"({"role":"oracle","config":{"graph":"disable"}})"));
  CHECK_FALSE(onnx.says(R"({"role":"default","config":{}})"));
  CHECK(onnx.says(R"({"role":"default","config":{"threads":"1"}})"));
  const Answer converted = plugin().candidates("pt2", 1);
  CHECK(converted.says(R"([{"role":"default","config":{}})"));
  CHECK_FALSE(converted.says("baseline"));
  CHECK_FALSE(converted.says("oracle"));
  CHECK_FALSE(converted.says(R"("threads":"1")"));
}
