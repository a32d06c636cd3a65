// SPDX-License-Identifier: Apache-2.0
#include "model/samples.h"

#include <doctest/doctest.h>

using namespace hasten;

namespace {

Signature signature_of() {
  Signature signature;
  signature.inputs = {
      {"input_ids", DType::kInt64, "", std::vector<Dimension>{"batch", "length"}, false},
      {"pixels", DType::kFloat32, "", std::vector<Dimension>{int64_t{1}, int64_t{3}, ""}, false},
      {"state", std::nullopt, "", std::nullopt, true}};
  return signature;
}

struct Given {
  std::string name;
  DType dtype;
  Shape shape;
};
const Given kIds = {"input_ids", DType::kInt64, {2, 5}};
const Given kPixels = {"pixels", DType::kFloat32, {1, 3, 9}};

Result<std::vector<Tensor>> match(const std::vector<Given>& given,
                                  const Signature& signature = signature_of()) {
  NamedTensors arrays;
  for (const Given& g : given) arrays.emplace_back(g.name, Tensor::zeros(g.dtype, g.shape));
  return match_inputs(arrays, signature, "x.npz");
}

std::string refused_sample(const std::vector<Given>& given) {
  const auto matched = match(given);
  if (matched) return "";
  CHECK(matched.error().code == Code::kInvalidArgument);
  return matched.error().message;
}

}  // namespace

TEST_CASE("match_inputs: by name, in any order, an optional input at the end left out") {
  const auto matched = match({kPixels, kIds});
  REQUIRE(matched);
  REQUIRE(matched->size() == 2);
  CHECK((*matched)[0].dtype() == DType::kInt64);
  CHECK((*matched)[1].dtype() == DType::kFloat32);
}

TEST_CASE("match_inputs: arr_0, arr_1 of np.savez are taken by position") {
  const auto matched =
      match({{"arr_1", DType::kFloat32, {1, 3, 9}}, {"arr_0", DType::kInt64, {2, 5}}});
  REQUIRE(matched);
  CHECK((*matched)[0].dtype() == DType::kInt64);
}

TEST_CASE("match_inputs: a model may itself call an input arr_0") {
  Signature signature;
  signature.inputs = {{"arr_1", std::nullopt, "", std::nullopt, false},
                      {"arr_0", std::nullopt, "", std::nullopt, false}};
  const auto matched =
      match({{"arr_0", DType::kInt8, {1}}, {"arr_1", DType::kInt16, {1}}}, signature);
  REQUIRE(matched);
  CHECK((*matched)[0].dtype() == DType::kInt16);
}

TEST_CASE("match_inputs: what is missing, extra or misnamed is said by name") {
  CHECK(refused_sample({kIds}) == "x.npz lacks the input 'pixels'");
  CHECK(refused_sample({}) == "x.npz lacks the input 'input_ids'");
  CHECK(refused_sample({kIds, {"pixel", DType::kFloat32, {1, 3, 9}}}) ==
        "'pixel' in x.npz is no input of the model; did you mean 'pixels'?");
  CHECK(refused_sample({kIds, kPixels, {"zebra", DType::kFloat32, {1}}}) ==
        "'zebra' in x.npz is no input of the model");
  CHECK(refused_sample({{"arr_0", DType::kInt64, {2, 5}},
                 {"arr_1", DType::kFloat32, {1, 3, 9}},
                 {"arr_2", DType::kFloat32, {1}},
                 {"arr_3", DType::kFloat32, {1}}}) ==
        "x.npz has 4 arrays, but the model has 3 inputs (input_ids, pixels, state)");
}

TEST_CASE("match_inputs: an optional input can be left out at the end only") {
  Signature signature = signature_of();
  signature.inputs[0].optional = true;
  const auto matched = match({kPixels}, signature);
  REQUIRE_FALSE(matched);
  CHECK(matched.error().message == "x.npz lacks the input 'input_ids'");
  CHECK(matched.error().hint.find("optional") != std::string::npos);
}

TEST_CASE("match_inputs: a wrong dtype comes with the remedy") {
  const auto matched = match({kIds, {"pixels", DType::kFloat64, {1, 3, 9}}});
  REQUIRE_FALSE(matched);
  CHECK(matched.error().message == "'pixels' is float64 in x.npz but the model takes float32");
  CHECK(matched.error().hint == "convert it before it is saved: array.astype(\"float32\")");
}

TEST_CASE("match_inputs: a shape outside the model's is refused") {
  CHECK(refused_sample({kIds, {"pixels", DType::kFloat32, {1, 4, 9}}}) ==
        "'pixels' has the shape [1,4,9] in x.npz, which is outside the model's [1,3,?]");
  CHECK(refused_sample({{"input_ids", DType::kInt64, {5}}, kPixels}) ==
        "'input_ids' has the shape [5] in x.npz, which is outside the model's [batch,length]");
}

TEST_CASE("match_inputs: an input of a foreign dtype is unsupported") {
  Signature signature;
  signature.inputs = {{"text", std::nullopt, "string", std::nullopt, false}};
  const auto matched = match({{"text", DType::kUInt8, {1}}}, signature);
  REQUIRE_FALSE(matched);
  CHECK(matched.error().code == Code::kUnsupported);
}

TEST_CASE("Signature: goes through JSON; unknown sizes may be null, empty or negative") {
  const auto json = Json::parse(
      R"({"inputs":[{"name":"x","dtype":"float32","shape":[1,"T",null,-1,""]},
                    {"name":"s","dtype":"string","optional":true},{"name":"u"},
                    {"name":"plugins","foreign_dtype":"float8"}],"outputs":[]})");
  REQUIRE(json);
  const auto signature = Signature::from_json(*json);
  REQUIRE(signature);
  const ValueInfo& x = signature->inputs[0];
  CHECK(x.dtype == DType::kFloat32);
  CHECK(*x.shape == std::vector<Dimension>{int64_t{1}, "T", "", "", ""});
  CHECK(signature->inputs[1].foreign_dtype == "string");
  CHECK(signature->inputs[1].optional);
  CHECK_FALSE(signature->inputs[2].shape);
  CHECK(signature->inputs[3].foreign_dtype == "float8");
  const auto again = Signature::from_json(signature->to_json());
  REQUIRE(again);
  CHECK(again->to_json() == signature->to_json());
  CHECK(again->inputs[1].foreign_dtype == "string");
  CHECK_FALSE(Signature::from_json(Json::object({{"inputs", Json::array()}})));
}
