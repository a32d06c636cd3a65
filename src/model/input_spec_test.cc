// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "model/recording.h"

using namespace hasten;

namespace {

std::string described(std::string_view text) {
  const auto spec = parse_input_spec(text);
  if (!spec) return spec.error().message;
  return TensorSpec{spec->name, spec->dtype, spec->axes}.describe();
}

}  // namespace

TEST_CASE("parse_input_spec: sizes, symbols, ranges and multipliers") {
  CHECK(described("image=float32[B,3,224,224]") == "image float32[B,3,224,224]");
  CHECK(described("ids=int64[B,T=8..128]") == "ids int64[B,T=8..128]");
  CHECK(described("x=float32[]") == "x float32[]");
  CHECK(described("x=bool[0,2]") == "x bool[0,2]");
  CHECK(described("h=float16[2,2*B=1..4,128]") == "h float16[2,2*B=1..4,128]");
  CHECK(described("x=bfloat16[ B , T = 4 ]") == "x bfloat16[B,T=4]");
  CHECK(described("enc/input.1:0=uint8[n_frames]") == "enc/input.1:0 uint8[n_frames]");
}

TEST_CASE("parse_input_spec: B is the batch, or the symbol that is given") {
  const auto spec = parse_input_spec("x=float32[B,N]");
  REQUIRE(spec);
  CHECK(spec->axes[0].kind == AxisKind::kBatch);
  CHECK(spec->axes[1].kind == AxisKind::kDynamic);
  const auto other = parse_input_spec("x=float32[B,3*N=1..2]", "N");
  REQUIRE(other);
  CHECK(other->axes[0].kind == AxisKind::kDynamic);
  CHECK(other->axes[1] == Axis{AxisKind::kBatch, 3, 6, 3, "N"});
}

TEST_CASE("parse_input_spec: a value range") {
  const auto ids = parse_input_spec("ids=int64[B,T=8..128]@0..30521");
  REQUIRE(ids);
  CHECK(ids->values == std::pair(0.0, 30521.0));
  const auto x = parse_input_spec("x=float32[2]@-1.5..1e3");
  REQUIRE(x);
  CHECK(x->values == std::pair(-1.5, 1000.0));
  CHECK_FALSE(parse_input_spec("x=float32[2]")->values);
}

TEST_CASE("parse_input_spec: an error names the position and shows the form") {
  CHECK(described("x=flaot32[2]") ==
        "'x=flaot32[2]': at position 3: unknown dtype 'flaot32'; did you mean 'float32'?");
  CHECK(described("x") == "'x': at position 1: '=' is missing");
  CHECK(described("=float32[2]") ==
        "'=float32[2]': at position 1: the name of the input is missing");
  CHECK(described("x=float32") == "'x=float32': at position 10: '[' is missing behind the dtype");
  CHECK(described("x=float32[2,3") == "'x=float32[2,3': at position 14: ']' is missing");
  CHECK(described("x=float32[2 3]") == "'x=float32[2 3]': at position 13: ',' or ']' expected");
  CHECK(described("x=float32[2,,3]").find("at position 13") != std::string::npos);
  CHECK(described("x=float32[-1]").find("at position 11") != std::string::npos);
  CHECK(described("x=float32[T=9..8]") ==
        "'x=float32[T=9..8]': at position 13: the range 9..8 of T is empty");
  CHECK(described("x=float32[T=0]").find("is empty") != std::string::npos);
  CHECK(described("x=float32[0*B]").find("a multiplier must be at least 1") != std::string::npos);
  CHECK(described("x=float32[99999999999999999999]").find("at most") != std::string::npos);
  CHECK(described("x=float32[2]y") == "'x=float32[2]y': at position 13: 'y' is too much");
  CHECK(described("x=uint8[2]@0..256") ==
        "'x=uint8[2]@0..256': at position 12: the value range does not fit uint8");
  CHECK(described("x=int8[2]@0.5..1").find("are whole numbers") != std::string::npos);
  CHECK(described("x=float32[2]@1..0").find("is empty") != std::string::npos);
  CHECK(described("x=float32[2]@1").find("low..high") != std::string::npos);
  CHECK(described("x=float32[2]@nan..1").find("is no number") != std::string::npos);
  CHECK(described("x=bool[2]@0..1").find("a bool has no value range") != std::string::npos);
  const auto spec = parse_input_spec("x");
  REQUIRE_FALSE(spec);
  CHECK(spec.error().code == Code::kInvalidArgument);
  CHECK(spec.error().hint.find("image=float32[B,3,224,224]") != std::string::npos);
}

TEST_CASE("looks_like_spec: a path is no SPEC") {
  CHECK(looks_like_spec("x=float32[2]"));
  CHECK(looks_like_spec("x=foo["));
  CHECK_FALSE(looks_like_spec("x.npz"));
  CHECK_FALSE(looks_like_spec("a[1]=2.npz"));
  CHECK_FALSE(looks_like_spec("a=b.npz"));
}
