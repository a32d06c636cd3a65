// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace hasten {
namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("Json: members keep the order in which they were written") {
  const Result<Json> value = Json::parse(R"({"z": 1, "a": {"y": null, "b": [true, "x"]}})");
  REQUIRE(value);
  CHECK(value->dump() == R"({"z":1,"a":{"y":null,"b":[true,"x"]}})");
  CHECK((*value)["z"].as_int() == 1);
  CHECK((*value)["a"]["b"].items().at(1).as_string() == "x");
}

TEST_CASE("Json: a missing key, or a key of something else, reads as null") {
  const Json value = Json::object({{"a", 1}});
  CHECK(value["b"].is_null());
  CHECK(value["a"]["b"]["c"].is_null());
  CHECK(value["b"].as_string().empty());
  CHECK(value["b"].as_int(7) == 7);
  CHECK_FALSE(value.contains("b"));
}

TEST_CASE("Json: a value of another type gives the caller's default") {
  CHECK(Json("5").as_int(-1) == -1);
  CHECK(Json(2.5).as_int(-1) == -1);
  CHECK(Json(1).as_bool(true));
  CHECK(Json(3).as_double() == 3.0);
}

TEST_CASE("Json: set replaces, and makes objects and arrays of nulls") {
  Json value;
  value.set("a", 1).set("b", 2).set("a", "x");
  CHECK(value.dump() == R"({"a":"x","b":2})");
  Json list;
  list.push(1);
  list.push(Json::array());
  CHECK(list.dump() == "[1,[]]");
}

TEST_CASE("Json: adding a member to a list is a bug of the caller") {
  Json list = Json::array();
  CHECK_THROWS_AS(list.set("a", 1), std::logic_error);
  Json text("x");
  CHECK_THROWS_AS(text.push(1), std::logic_error);
}

TEST_CASE("Json: doubles are written in the shortest form that reads back the same") {
  CHECK(Json(0.1).dump() == "0.1");
  CHECK(Json(1.0).dump() == "1.0");
  CHECK(Json(-0.0).dump() == "-0.0");
  CHECK(Json(5e-324).dump() == "5e-324");
  for (const double v : {0.1, 1.0 / 3, 1e300, 123456789.125, 2.0, 1e22, 4.9406564584124654e-324,
                         std::numeric_limits<double>::max()}) {
    const Result<Json> back = Json::parse(Json(v).dump());
    REQUIRE(back);
    CHECK_FALSE(back->is_int());
    CHECK(back->as_double() == v);
  }
}

TEST_CASE("Json: NaN and infinity become null") {
  CHECK(Json(std::numeric_limits<double>::quiet_NaN()).dump() == "null");
  CHECK(Json(-std::numeric_limits<double>::infinity()).dump() == "null");
}

TEST_CASE("Json: integers keep all 64 bits, larger ones become doubles") {
  const Result<Json> value =
      Json::parse("[9223372036854775807, -9223372036854775808, 9223372036854775808]");
  REQUIRE(value);
  CHECK(value->items()[0].as_int() == std::numeric_limits<int64_t>::max());
  CHECK(value->items()[1].as_int() == std::numeric_limits<int64_t>::min());
  CHECK_FALSE(value->items()[2].is_int());
  CHECK(value->items()[2].as_double() == 9223372036854775808.0);
}

TEST_CASE("Json: bytes that are no UTF-8 are replaced, control characters are escaped") {
  CHECK(Json("a\xFF"
             "b")
            .dump() ==
        "\"a\xEF\xBF\xBD"
        "b\"");
  CHECK(Json(std::string("\x01\n\"\\\0", 5)).dump() == R"("\u0001\n\"\\\u0000")");
  CHECK(Json("模型").dump() == "\"模型\"");
}

TEST_CASE("Json: indented text puts each member on a line and plain arrays on one") {
  const Json value = Json::object({{"a", Json::Array{1, 2}},
                                   {"b", Json::Array{Json::object({{"c", Json()}})}},
                                   {"d", Json::object()}});
  CHECK(value.dump(2) == R"({
  "a": [1, 2],
  "b": [
    {
      "c": null
    }
  ],
  "d": {}
})");
  const Result<Json> back = Json::parse(value.dump(2));
  REQUIRE(back);
  CHECK(*back == value);
}

TEST_CASE("Json: bad text fails with the position of the mistake") {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\xFF\"", "\"a", "[1}", "NaN", "{1:2}"}) {
    CAPTURE(text);
    const Result<Json> value = Json::parse(text);
    REQUIRE_FALSE(value);
    CHECK(value.error().code == Code::kInvalidArgument);
    CHECK(value.error().message.find("line 1, column") != std::string::npos);
    CHECK(value.error().message.find("json.exception") == std::string::npos);
  }
}

TEST_CASE("Json: a name that stands twice in one object is refused") {
  const Result<Json> twice = Json::parse(R"({"a": {"b": 1, "b": 2}})");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message == "JSON: 'b' stands twice at byte 18");
  CHECK(Json::parse(R"([{"b": 1}, {"b": 2}])"));
}

TEST_CASE("Json: 128 levels are read, 129 are refused, a million do no harm") {
  CHECK(Json::parse(nested(128)));
  const Result<Json> deeper = Json::parse(nested(129));
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().message == "JSON: nested deeper than 128 levels at byte 129");
  CHECK_FALSE(Json::parse(std::string(1'000'000, '[')));
  std::string objects;
  for (int i = 0; i < 129; ++i) objects += "{\"a\":";
  CHECK_FALSE(Json::parse(objects));
}

}  // namespace
}  // namespace hasten
