// SPDX-License-Identifier: Apache-2.0
#include "model/graph_spec.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace hasten;

namespace {

const Axis kB = {AxisKind::kBatch, 1, 2, 1, "B"};
const Axis kTwoB = {AxisKind::kBatch, 2, 4, 2, "B"};
const Axis kT = {AxisKind::kDynamic, 8, 16, 1, "T"};

Axis fixed(int64_t size) { return {AxisKind::kStatic, size, size, 1, ""}; }

// ids [B,T], mask [B,T], state [2*B,3]
GraphSpec graph_of() {
  GraphSpec graph;
  graph.name = "1";
  graph.inputs = {{"ids", DType::kInt64, {kB, kT}},
                  {"mask", DType::kInt64, {kB, kT}},
                  {"state", DType::kFloat32, {kTwoB, fixed(3)}}};
  graph.outputs = {{"y", DType::kFloat32, {kB, fixed(0)}}};
  return graph;
}

std::vector<Tensor> inputs_of(int64_t batch, int64_t length) {
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor::zeros(DType::kInt64, Shape{batch, length}));
  inputs.push_back(Tensor::zeros(DType::kInt64, Shape{batch, length}));
  inputs.push_back(Tensor::zeros(DType::kFloat32, Shape{2 * batch, 3}));
  return inputs;
}

std::string misfit(const std::vector<Tensor>& inputs) {
  std::vector<DLTensor> views;
  for (const Tensor& tensor : inputs) views.push_back(tensor.view());
  const Status status = graph_of().accepts(views);
  return status ? "" : status.error().message;
}

std::vector<int64_t> int64s(const Tensor& tensor) {
  const auto values = tensor.values<int64_t>();
  return {values.begin(), values.end()};
}

Tensor counting(const Shape& shape) {
  std::vector<int64_t> values(element_count(shape));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from<int64_t>(values, shape);
}

}  // namespace

TEST_CASE("TensorSpec: describes itself as an input SPEC would") {
  CHECK(TensorSpec{"image", DType::kFloat32, {kB, fixed(3), fixed(224)}}.describe() ==
        "image float32[B=1..2,3,224]");
  CHECK(TensorSpec{"x", DType::kBool, {}}.describe() == "x bool[]");
  CHECK(describe(kTwoB) == "2*B=1..2");
  CHECK(describe(Axis{AxisKind::kDynamic, 0, 0, 1, "T"}) == "T");
}

TEST_CASE("GraphSpec: the batch range is that of the batch axes divided by their multipliers") {
  GraphSpec graph = graph_of();
  CHECK(graph.has_batch_axis());
  CHECK(graph.min_batch() == 1);
  CHECK(graph.max_batch() == 2);
  graph.inputs = {{"x", DType::kFloat32, {fixed(8)}}};
  CHECK_FALSE(graph.has_batch_axis());
  CHECK(graph.min_batch() == 1);
  CHECK(graph.max_batch() == 1);
}

TEST_CASE("GraphSpec: the batch size of inputs is one number or none") {
  const GraphSpec graph = graph_of();
  CHECK(graph.batch_of(inputs_of(5, 8)) == 5);
  std::vector<Tensor> inputs = inputs_of(5, 8);
  inputs[2] = Tensor::zeros(DType::kFloat32, Shape{8, 3});
  CHECK_FALSE(graph.batch_of(inputs));
  inputs[2] = Tensor::zeros(DType::kFloat32, Shape{9, 3});
  CHECK_FALSE(graph.batch_of(inputs));
  inputs.pop_back();
  CHECK_FALSE(graph.batch_of(inputs));
}

TEST_CASE("GraphSpec: accepts sizes outside the ranges, which are the routes' business") {
  CHECK(misfit(inputs_of(1, 8)) == "");
  CHECK(misfit(inputs_of(100, 1)) == "");
  CHECK(misfit(inputs_of(0, 0)) == "");
}

TEST_CASE("GraphSpec: a refusal names the input, the axis, and what was wanted") {
  std::vector<Tensor> inputs = inputs_of(2, 8);
  SUBCASE("arity") {
    inputs.pop_back();
    CHECK(misfit(inputs) == "2 inputs given, not 3 (ids, mask, state)");
  }
  SUBCASE("dtype") {
    inputs[1] = Tensor::zeros(DType::kInt32, Shape{2, 8});
    CHECK(misfit(inputs) == "input 'mask' is int32, not int64");
  }
  SUBCASE("rank") {
    inputs[1] = Tensor::zeros(DType::kInt64, Shape{2});
    CHECK(misfit(inputs) ==
          "input 'mask' has rank 1 (shape [2]), not 2: mask int64[B=1..2,T=8..16]");
  }
  SUBCASE("static size") {
    inputs[2] = Tensor::zeros(DType::kFloat32, Shape{4, 5});
    CHECK(misfit(inputs) == "input 'state': axis 1 must be 3, not 5");
  }
  SUBCASE("a symbol of two sizes") {
    inputs[1] = Tensor::zeros(DType::kInt64, Shape{2, 9});
    CHECK(misfit(inputs) ==
          "input 'mask': axis 1 (T) must be 8, not 9: axis 1 of 'ids' makes T 8");
  }
  SUBCASE("no multiple") {
    inputs[2] = Tensor::zeros(DType::kFloat32, Shape{5, 3});
    CHECK(misfit(inputs) == "input 'state': axis 0 (2*B) is 5, which is no multiple of 2");
  }
  SUBCASE("another batch") {
    inputs[2] = Tensor::zeros(DType::kFloat32, Shape{6, 3});
    CHECK(misfit(inputs) ==
          "input 'state': axis 0 (2*B) must be 4, not 6: axis 0 of 'ids' makes B 2");
  }
}

TEST_CASE("GraphSpec: goes through JSON unchanged") {
  const GraphSpec graph = graph_of();
  const auto json = Json::parse(graph.to_json().dump());
  REQUIRE(json);
  const auto back = GraphSpec::from_json(*json);
  REQUIRE(back);
  CHECK(back->name == "1");
  CHECK(back->inputs == graph.inputs);
  CHECK(back->outputs == graph.outputs);
}

TEST_CASE("GraphSpec: wrong JSON is refused") {
  const auto fails = [](std::string_view axis) {
    const auto json =
        Json::parse(R"({"name":"0","inputs":[{"name":"x","dtype":"float32","axes":[)" +
                    std::string(axis) + "]}]}");
    REQUIRE(json);
    return !GraphSpec::from_json(*json);
  };
  CHECK_FALSE(fails(R"({"kind":"static","min":1,"max":1})"));
  CHECK(fails(R"({"kind":"static","min":1,"max":2})"));
  CHECK(fails(R"({"kind":"batch","min":1,"max":2})"));
  CHECK(fails(R"({"kind":"batch","min":2,"max":1,"symbol":"B"})"));
  CHECK(fails(R"({"kind":"batch","min":1,"max":2,"symbol":"B","multiplier":0})"));
  CHECK(fails(R"({"kind":"odd","min":1,"max":1})"));
  CHECK(fails(R"({"kind":"static","min":-1,"max":-1})"));
  CHECK(fails("7"));
  CHECK_FALSE(GraphSpec::from_json(Json()));
}

TEST_CASE("make_batch: recorded rows are cycled, not row 0 repeated") {
  GraphSpec graph;
  graph.inputs = {{"x", DType::kInt64, {kB, fixed(2)}},
                  {"y", DType::kInt64, {fixed(1), kTwoB}},
                  {"z", DType::kInt64, {fixed(2)}}};
  std::vector<Tensor> inputs;
  inputs.push_back(counting({2, 2}));
  inputs.push_back(counting({1, 4}));
  inputs.push_back(counting({2}));
  const auto three = make_batch(graph, inputs, 3);
  CHECK(int64s(three[0]) == std::vector<int64_t>{0, 1, 2, 3, 0, 1});
  CHECK(int64s(three[1]) == std::vector<int64_t>{0, 1, 2, 3, 0, 1});
  CHECK(int64s(three[2]) == std::vector<int64_t>{0, 1});
  const auto one = make_batch(graph, inputs, 1);
  CHECK(int64s(one[0]) == std::vector<int64_t>{0, 1});
  CHECK(int64s(one[1]) == std::vector<int64_t>{0, 1});
  const auto grown = make_batch(graph, make_batch(graph, inputs, 0), 2);
  CHECK(int64s(grown[0]) == std::vector<int64_t>{0, 0, 0, 0});
}

TEST_CASE("make_batch: multipliers 1, 2, 3 at batch 10 give 10, 20, 30") {
  GraphSpec graph;
  std::vector<Tensor> inputs;
  for (const int64_t m : {1, 2, 3}) {
    graph.inputs.push_back({"x", DType::kInt64, {{AxisKind::kBatch, m, 2 * m, m, "B"}}});
    inputs.push_back(counting({m}));
  }
  const auto ten = make_batch(graph, inputs, 10);
  CHECK(ten[0].shape()[0] == 10);
  CHECK(ten[1].shape()[0] == 20);
  CHECK(ten[2].shape()[0] == 30);
}

TEST_CASE("resize_symbol: every axis of the symbol gets the size, the others keep theirs") {
  const GraphSpec graph = graph_of();
  const auto longer = resize_symbol(graph, inputs_of(2, 8), "T", 11);
  CHECK(Shape(longer[0].shape().begin(), longer[0].shape().end()) == Shape{2, 11});
  CHECK(Shape(longer[1].shape().begin(), longer[1].shape().end()) == Shape{2, 11});
  CHECK(Shape(longer[2].shape().begin(), longer[2].shape().end()) == Shape{4, 3});
  CHECK(graph.same_structure(longer));
}
