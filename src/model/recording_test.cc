// SPDX-License-Identifier: Apache-2.0
#include "model/recording.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace hasten;

namespace {

struct Shot {
  std::vector<Shape> shapes;
  std::optional<int64_t> batch;
};

RecordedCall call_of(const Shot& shot, DType dtype = DType::kFloat32) {
  RecordedCall call;
  for (const Shape& shape : shot.shapes) call.sample.inputs.push_back(Tensor::zeros(dtype, shape));
  call.batch_size = shot.batch;
  return call;
}

// The graph's axes as text, one input after the other.
std::vector<std::string> axes_of(const std::vector<Shot>& shots) {
  std::vector<RecordedCall> calls;
  for (const Shot& shot : shots) calls.push_back(call_of(shot));
  const auto graphs = group_into_graphs(std::move(calls), {"x", "y", "z"});
  REQUIRE(graphs.size() == 1);
  std::vector<std::string> texts;
  for (const TensorSpec& spec : graphs[0].spec.inputs) texts.push_back(spec.describe());
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

// The worked cases of the reference text, 2.4.
TEST_CASE("group_into_graphs: an axis that follows the batch by a whole multiple is a batch axis") {
  CHECK(axes_of({{{{1, 2, 3}}, 1}, {{{3, 2, 6}}, 3}}) == Texts{"x float32[B=1..3,2,dim1=3..6]"});
  CHECK(axes_of({{{{3, 2, 6}}, 3}, {{{5, 4, 10}}, 5}}) ==
        Texts{"x float32[B=3..5,dim1=2..4,2*B=3..5]"});
  CHECK(axes_of({{{{1, 10}}, 1}, {{{2, 20}}, 2}}) == Texts{"x float32[B=1..2,10*B=1..2]"});
}

TEST_CASE("group_into_graphs: one call that does not follow the batch makes the axis dynamic") {
  CHECK(axes_of({{{{1, 2, 3}}, 1}, {{{3, 2, 6}}, 3}, {{{4, 2, 4}}, 1}}) ==
        Texts{"x float32[dim1=1..4,2,dim2=3..6]"});
}

TEST_CASE("group_into_graphs: the labels do not depend on the order of the samples") {
  std::vector<Shot> shots = {
      {{{1, 2, 3}}, 1}, {{{3, 2, 6}}, 3}, {{{4, 2, 4}}, 1}, {{{6, 2, 5}}, 6}};
  const auto by_first = [](const Shot& a, const Shot& b) { return a.shapes < b.shapes; };
  std::ranges::sort(shots, by_first);
  do {
    CHECK(axes_of(shots) == Texts{"x float32[dim1=1..6,2,dim2=3..6]"});
  } while (std::next_permutation(shots.begin(), shots.end(), by_first));
}

TEST_CASE("group_into_graphs: the batch may stand at any axis") {
  CHECK(axes_of({{{{1, 512}, {2, 1, 128}}, 1}, {{{2, 512}, {2, 2, 128}}, 2}}) ==
        Texts{"x float32[B=1..2,512]", "y float32[2,B=1..2,128]"});
}

TEST_CASE("group_into_graphs: an axis that is equal at every batch size is static") {
  CHECK(axes_of({{{{2, 7}}, 1}, {{{2, 7}}, 2}}) == Texts{"x float32[2,7]"});
}

TEST_CASE("group_into_graphs: one batch size alone makes no batch axis") {
  CHECK(axes_of({{{{2, 7}}, 2}, {{{2, 9}}, 2}}) == Texts{"x float32[2,dim1=7..9]"});
  CHECK(axes_of({{{{2, 7}}, 2}, {{{4, 7}}, std::nullopt}}) == Texts{"x float32[dim1=2..4,7]"});
}

TEST_CASE("group_into_graphs: a call of unknown batch size can only disprove a batch axis") {
  const Shot one = {{{1, 2}}, 1}, two = {{{2, 4}}, 2};
  CHECK(axes_of({one, two, {{{3, 6}}, std::nullopt}}) == Texts{"x float32[B=1..3,2*B=1..3]"});
  CHECK(axes_of({one, two, {{{3, 5}}, std::nullopt}}) == Texts{"x float32[B=1..3,dim1=2..5]"});
  CHECK(axes_of({one, two, {{{3, 8}}, std::nullopt}}) == Texts{"x float32[dim1=1..3,dim2=2..8]"});
}

TEST_CASE("group_into_graphs: an empty batch fits every multiplier") {
  CHECK(axes_of({{{{0, 4}}, 0}, {{{6, 4}}, 2}}) == Texts{"x float32[3*B=0..2,4]"});
  CHECK(axes_of({{{{1, 4}}, 0}, {{{6, 4}}, 2}}) == Texts{"x float32[dim1=1..6,4]"});
}

TEST_CASE("group_into_graphs: axes of equal sizes in all samples share a symbol") {
  CHECK(axes_of({{{{1, 8}, {1, 8}, {1, 9}}, 1}, {{{1, 12}, {1, 12}, {1, 12}}, 1}}) ==
        Texts{"x float32[1,dim1=8..12]", "y float32[1,dim1=8..12]", "z float32[1,dim2=9..12]"});
}

TEST_CASE("group_into_graphs: dtype, rank and arity make graphs of their own, in order") {
  std::vector<RecordedCall> calls;
  calls.push_back(call_of({{{1, 2}}, 1}));
  calls.push_back(call_of({{{1, 2}}, 1}, DType::kFloat16));
  calls.push_back(call_of({{{1, 2, 3}}, 1}));
  calls.push_back(call_of({{{1, 2}, {1}}, 1}));
  calls.push_back(call_of({{{2, 2}}, 2}));
  const auto graphs = group_into_graphs(std::move(calls), {"x"});
  REQUIRE(graphs.size() == 4);
  CHECK(graphs[0].spec.inputs[0].describe() == "x float32[B=1..2,2]");
  CHECK(graphs[0].samples.size() == 2);
  CHECK(graphs[0].batch_sizes == std::vector<std::optional<int64_t>>{1, 2});
  CHECK(graphs[1].spec.inputs[0].describe() == "x float16[1,2]");
  CHECK(graphs[2].spec.name == "2");
  CHECK(graphs[3].spec.inputs[1].name == "input1");  // No name was given for it.
}

TEST_CASE("output_specs: outputs get their own labels, and the symbols of the inputs") {
  GraphSpec graph;
  graph.inputs = {{"ids",
                   DType::kInt64,
                   {{AxisKind::kBatch, 1, 2, 1, "B"}, {AxisKind::kDynamic, 8, 12, 1, "T"}}}};
  std::vector<std::vector<Tensor>> outputs(2);
  for (size_t k = 0; k < 2; ++k) {
    const int64_t batch = k == 0 ? 1 : 2, length = k == 0 ? 8 : 12;
    outputs[k].push_back(Tensor::zeros(DType::kFloat32, Shape{batch, length, 4}));
    outputs[k].push_back(Tensor::zeros(DType::kFloat32, Shape{batch * 3, length / 2}));
    outputs[k].push_back(Tensor::zeros(DType::kBool, Shape{}));
  }
  const std::vector<std::optional<int64_t>> batches = {1, 2};
  const auto specs = output_specs(graph, outputs, batches, {"states", "pooled", "ok"});
  REQUIRE(specs.size() == 3);
  CHECK(specs[0].describe() == "states float32[B=1..2,T=8..12,4]");
  CHECK(specs[1].describe() == "pooled float32[3*B=1..2,dim2=4..6]");
  CHECK(specs[2].describe() == "ok bool[]");
}

TEST_CASE("declare: what the user declared replaces what was inferred") {
  GraphSpec graph;
  graph.inputs = {{"ids",
                   DType::kInt64,
                   {{AxisKind::kStatic, 1, 1, 1, ""}, {AxisKind::kDynamic, 8, 200, 1, "dim1"}}}};
  const auto spec = parse_input_spec("ids=int64[B,T=16..128]");
  REQUIRE(spec);
  REQUIRE(declare(graph, std::vector{*spec}));
  CHECK(graph.inputs[0].describe() == "ids int64[B=1,T=8..200]");
}

TEST_CASE("declare: a contradiction to the samples is an error that names the input") {
  GraphSpec graph;
  graph.inputs = {{"x", DType::kFloat32, {{AxisKind::kDynamic, 3, 6, 1, "dim1"}}}};
  const auto fails = [&](std::string_view text) {
    const auto spec = parse_input_spec(text);
    REQUIRE(spec);
    const Status status = declare(graph, std::vector{*spec});
    REQUIRE_FALSE(status);
    return status.error().message;
  };
  CHECK(fails("y=float32[N]") == "input 'y': is declared, but no sample has it");
  CHECK(fails("x=int64[N]") == "input 'x': is declared int64, but the samples have float32");
  CHECK(fails("x=float32[N,2]") ==
        "input 'x': is declared with rank 2, but the samples have rank 1");
  CHECK(fails("x=float32[3]") == "input 'x': axis 0 is declared 3, but the samples have 6");
  CHECK(fails("x=float32[2*B]") ==
        "input 'x': axis 0 is declared a multiple of 2, but the samples have 3");
}
