// SPDX-License-Identifier: Apache-2.0
// What is OpenVINO's own; what it shares with other engines is in onnx_engine_test.cc.
#include <doctest/doctest.h>

#include <sched.h>

#include "onnx_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT

TEST_CASE("bfloat16 is computed and given back as such") {
  const Built model = plugin().build(data("linear_bf16"));
  INFO(model.answer().text);
  REQUIRE(model);
  // [1, 2] @ [[1,2],[3,4]] + [0.5,-0.5] = [7.5, 9.5]: 0x40f0 and 0x4118 in bfloat16.
  Input x = Input::of<uint16_t>({1, 2}, {0x3f80, 0x4000}, {kDLBfloat, 16, 1});
  const auto out = model({x.view()});
  CHECK(out[0]->dl_tensor.dtype.code == kDLBfloat);
  CHECK(values_of<uint16_t>(out[0]) == std::vector<uint16_t>{0x40f0, 0x4118});
}

TEST_CASE("weights that OpenVINO would misread are refused by name") {
  const Answer answer = plugin().build(data("typed_constants")).answer();
  CHECK(answer.code == HASTEN_UNSUPPORTED);
  CHECK(answer.says("misreads 'c_"));
}

TEST_CASE("every dtype of the file is the dtype of the output") {
  const Built model = plugin().build(data("dtypes"));
  INFO(model.answer().text);
  REQUIRE(model);
  const DLDataType half{kDLFloat, 16, 1}, bfloat{kDLBfloat, 16, 1};
  std::vector<Input> in;
  in.push_back(Input::of<uint8_t>({2}, {0, 255}));
  in.push_back(Input::of<int8_t>({2}, {-128, 127}));
  in.push_back(Input::of<uint16_t>({2}, {0, 65535}));
  in.push_back(Input::of<int16_t>({2}, {-32768, 32767}));
  in.push_back(Input::of<uint32_t>({2}, {0, 7}));
  in.push_back(Input::of<int32_t>({2}, {-2147483647, 1}));
  in.push_back(Input::of<uint64_t>({2}, {1, 2}));
  in.push_back(Input::of<int64_t>({2}, {5, -1}));
  in.push_back(Input::of<uint16_t>({2}, {0x7bff, 0x3c00}, half));
  in.push_back(Input::of<uint16_t>({2}, {0x3f80, 0x7f7f}, bfloat));
  in.push_back(Input::of<float>({2}, {1.5F, -0.25F}));
  in.push_back(Input::of<double>({2}, {0.5, -3}));
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

TEST_CASE("int64 is computed within 32 bits: right there, and the host must check beyond") {
  const Built model = plugin().build(data("add_int64"));
  REQUIRE(model);
  Input a = Input::of<int64_t>({2}, {2000000000, -5}), b = Input::of<int64_t>({2}, {47483647, 7});
  CHECK(values_of<int64_t>(model({a.view(), b.view()})[0]) == std::vector<int64_t>{2047483647, 2});
}

TEST_CASE("an input of unknown rank is unsupported and named") {
  const Answer answer = plugin().build(data("unknown_rank")).answer();
  CHECK(answer.code == HASTEN_UNSUPPORTED);
  CHECK(answer.says("the rank of 'x'"));
}

TEST_CASE("large inputs are read where they lie, small ones copied, in any order of sizes") {
  const Built model = plugin().build(data("two_axes"));
  REQUIRE(model);
  // 5000 floats are above the size up to which inputs are copied.
  for (const int64_t length : {3, 5000, 5000, 3, 6000, 4}) {
    for (const float value : {1.0F, 2.0F}) {
      Input x = Input::of<float>({1, length}, {});
      const std::vector<float> all(static_cast<size_t>(length), value);
      x.bytes.resize(all.size() * sizeof(float));
      std::memcpy(x.bytes.data(), all.data(), x.bytes.size());
      const auto out = model({x.view()});
      CHECK(values_of<float>(out[0])[0] == value * static_cast<float>(length));
      // The same memory with other values.
      std::memset(x.bytes.data(), 0, x.bytes.size());
      CHECK(values_of<float>(model({x.view()})[0])[0] == 0);
      CHECK(values_of<float>(out[1])[0] == value);
    }
  }
}

TEST_CASE("every option is taken and gives the same values") {
  const std::vector<std::vector<hasten_option>> all = {
      {{"threads", "2"}},      {{"hint", "throughput"}},
      {{"hint", "none"}},      {{"precision", "auto"}},
      {{"precision", "bf16"}}, {{"precision", "f16"}},
      {{"streams", "2"}},      {{"pinning", "true"}},
      {{"pinning", "false"}},  {{"denormals_as_zero", "true"}}};
  Input x = Input::of<float>({1, 3}, {1, 2, 3});
  for (const auto& options : all) {
    INFO(options[0].key << "=" << options[0].value);
    const Built model = plugin().build(data("affine"), options);
    INFO(model.answer().text);
    REQUIRE(model);
    CHECK(values_of<float>(model({x.view()})[0]) == std::vector<float>{3, 5, 7});
  }
}

TEST_CASE("the calling thread keeps its CPUs and its floating-point mode") {
  cpu_set_t before, after;
  CPU_ZERO(&before);
  CPU_ZERO(&after);
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const volatile float tiny = 1e-39F;
  const Built model =
      plugin().build(data("affine"), {{"pinning", "true"}, {"denormals_as_zero", "true"}});
  REQUIRE(model);
  Input x = Input::of<float>({1, 3}, {1, 2, 3});
  model({x.view()});
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
  CHECK(tiny * 2 > 0);
}

TEST_CASE("candidates: no baseline, no oracle; lower precision only when asked for") {
  const Answer answer = plugin().candidates("onnx", 4);
  CHECK(answer.says(R"([{"role":"default","config":{}})"));
  CHECK(answer.says(R"({"role":"default","config":{"threads":"1"}})"));
  CHECK_FALSE(answer.says("baseline"));
  CHECK_FALSE(answer.says("oracle"));
  CHECK_FALSE(answer.says(R"({"role":"default","config":{"precision")"));
  CHECK_FALSE(answer.says(R"({"role":"extra","config":{"precision")"));  // Those are "lossy".
  CHECK_FALSE(plugin().candidates("pt2", 1).says(R"("threads":"1")"));
}

TEST_CASE("inspect answers from the file alone") {
  CHECK(plugin().inspect(data("affine")).says(R"({"name":"x","dtype":"float32","shape":["B",3]})"));
  CHECK(plugin().inspect(data("affine"), "pt2").code == HASTEN_UNSUPPORTED);
}
