// SPDX-License-Identifier: Apache-2.0
#include "tune/inputs.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hasten {
namespace {

ValueInfo input(const std::string& name, DType dtype, std::vector<Dimension> shape,
                bool optional = false) {
  ValueInfo info;
  info.name = name;
  info.dtype = dtype;
  info.shape = std::move(shape);
  info.optional = optional;
  return info;
}

// A model of text: ids and a mask, both [N,L].
Signature text_model() {
  return {.inputs = {input("ids", DType::kInt64, {"N", "L"}),
                     input("mask", DType::kInt64, {"N", "L"})},
          .outputs = {}};
}

Signature one_input(std::vector<Dimension> shape) {
  return {.inputs = {input("x", DType::kFloat32, std::move(shape))}, .outputs = {}};
}

InputRequest request_of(std::vector<std::string> inputs, std::vector<int64_t> batch_sizes = {}) {
  InputRequest request;
  request.inputs = std::move(inputs);
  request.batch_sizes = std::move(batch_sizes);
  request.limit_bytes = 1'000'000'000;
  return request;
}

PreparedGraph graph_of(const InputRequest& request, const Signature& signature) {
  Result<PreparedInputs> prepared = prepare_inputs(request, signature);
  REQUIRE_MESSAGE(prepared, (prepared ? "" : prepared.error().message));
  REQUIRE(prepared->graphs.size() == 1);
  return std::move(prepared->graphs.front());
}

Error error_of(const InputRequest& request, const Signature& signature) {
  const Result<PreparedInputs> prepared = prepare_inputs(request, signature);
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().code == Code::kInvalidArgument);
  return prepared.error();
}

Shape shape_of(const PreparedGraph& graph, size_t sample, size_t k) {
  const std::span<const int64_t> shape = graph.samples[sample].inputs[k].shape();
  return {shape.begin(), shape.end()};
}

TEST_CASE("prepare_inputs: a symbol has one range and one size, in whichever SPEC they stand") {
  for (const std::vector<std::string>& specs :
       {std::vector<std::string>{"ids=int64[B,T=8..128]", "mask=int64[B,T]"},
        std::vector<std::string>{"ids=int64[B,T]", "mask=int64[B,T=8..128]"},
        std::vector<std::string>{"ids=int64[B,T=8..128]", "mask=int64[B,T=8..128]"}}) {
    const PreparedGraph graph = graph_of(request_of(specs), text_model());
    REQUIRE(graph.samples.size() == 2);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(shape_of(graph, i, 0) == shape_of(graph, i, 1));
      CHECK(shape_of(graph, i, 0)[1] > 8);
      CHECK(shape_of(graph, i, 0)[1] < 128);
    }
    CHECK(graph.spec.inputs[0].describe() == "ids int64[B=1..2,T=8..128]");
    CHECK(graph.spec.inputs[1].describe() == "mask int64[B=1..2,T=8..128]");
  }
}

TEST_CASE("prepare_inputs: a multiplier multiplies") {
  const Signature signature{.inputs = {input("a", DType::kFloat32, {"N", "L"}),
                                       input("b", DType::kFloat32, {"N", "M"})},
                            .outputs = {}};
  for (const char* range : {"", "=3..9"}) {
    const PreparedGraph graph = graph_of(
        request_of({std::string("a=float32[B,T") + range + "]", "b=float32[2*B,3*T]"}, {1, 4}),
        signature);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(shape_of(graph, i, 1)[0] == 2 * shape_of(graph, i, 0)[0]);
      CHECK(shape_of(graph, i, 1)[1] == 3 * shape_of(graph, i, 0)[1]);
    }
  }
}

TEST_CASE("prepare_inputs: a range of one size is that size") {
  const PreparedGraph graph = graph_of(request_of({"x=float32[B=8,T=16]"}), one_input({"N", "L"}));
  REQUIRE(graph.samples.size() == 1);
  CHECK(shape_of(graph, 0, 0) == Shape{8, 16});
}

TEST_CASE("prepare_inputs: two ranges of one symbol are a mistake") {
  const Error error =
      error_of(request_of({"ids=int64[B,T=8..128]", "mask=int64[B,T=8..64]"}), text_model());
  CHECK(error.message == "the SPECs say T=8..128 and T=8..64");
}

TEST_CASE("prepare_inputs: an optional input may lack, but not in front of a given one") {
  const Signature signature{.inputs = {input("a", DType::kFloat32, {"N"}),
                                       input("b", DType::kFloat32, {"N"}, true),
                                       input("c", DType::kFloat32, {"N"}, true)},
                            .outputs = {}};
  CHECK(graph_of(request_of({"a=float32[B]"}), signature).spec.inputs.size() == 1);
  CHECK(graph_of(request_of({"a=float32[B]", "b=float32[B]"}), signature).spec.inputs.size() == 2);
  const Error error = error_of(request_of({"a=float32[B]", "c=float32[B]"}), signature);
  CHECK(error.message == "the input 'b' is not given");
  CHECK(error.hint.find("left out with all behind it") != std::string::npos);
}

TEST_CASE("prepare_inputs: recorded batch sizes are in the declared range") {
  const PreparedGraph graph = graph_of(request_of({"x=float32[B=4..8,3]"}), one_input({"N", 3}));
  REQUIRE(graph.samples.size() == 2);
  CHECK(shape_of(graph, 0, 0)[0] == 4);
  CHECK(shape_of(graph, 1, 0)[0] == 5);
  CHECK(graph.batch_has_range);
  CHECK(graph.spec.min_batch() == 4);
  CHECK(graph.spec.max_batch() == 8);
  CHECK_FALSE(graph_of(request_of({"x=float32[B,3]"}), one_input({"N", 3})).batch_has_range);

  const Error error = error_of(request_of({"x=float32[B=4..8,3]"}, {4, 16}), one_input({"N", 3}));
  CHECK(error.message == "the batch size 16 is outside B=4..8");
}

TEST_CASE("prepare_inputs: sizes that no memory holds are refused before they are made") {
  const Signature signature = one_input({"N", "L"});
  // 4 bytes x 1e9 x 3.
  const Error one =
      error_of(request_of({"x=float32[B,3]"}, {1, 1'000'000'000}), one_input({"N", 3}));
  CHECK(one.message ==
        "at B = 1000000000 the inputs of one call take 12 GB, and there is room for 1.0 GB");
  const Error range = error_of(request_of({"x=float32[B=1..1000000000,3]"}), one_input({"N", 3}));
  CHECK(range.message == one.message);
  const Error length = error_of(request_of({"x=float32[B,T=1..1000000000]"}), signature);
  CHECK(length.message.find("B = 1, T = 333333334 the inputs") != std::string::npos);
  // More bytes than 64 bits can count.
  const std::string most = std::to_string(int64_t{1} << 40);
  const Error product = error_of(
      request_of({"x=float32[1048576*B," + most + "]"}, {int64_t{1} << 40}),
      one_input({"N", int64_t{1} << 40}));
  CHECK(product.message.find("there is room for 1.0 GB") != std::string::npos);
  for (const int64_t size : {(int64_t{1} << 40) + 1, int64_t{0}, int64_t{-1}}) {
    const Error error = error_of(request_of({"x=float32[B,3]"}, {size}), one_input({"N", 3}));
    CHECK(error.message.find("a batch size is a whole number from 1 to") != std::string::npos);
  }
}

}  // namespace
}  // namespace hasten
