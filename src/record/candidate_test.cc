// SPDX-License-Identifier: Apache-2.0
#include "record/candidate.h"

#include <doctest/doctest.h>

#include <string>

namespace hasten {
namespace {

TEST_CASE("Candidate: a name alone has no settings") {
  const auto candidate = Candidate::parse("inductor");
  REQUIRE(candidate);
  CHECK(candidate->backend == "inductor");
  CHECK(candidate->config.empty());
  CHECK(candidate->label() == "inductor");
}

TEST_CASE("Candidate: the label lists the settings in the order of their names") {
  const auto candidate = Candidate::parse("onnxruntime:threads=2,graph=basic");
  REQUIRE(candidate);
  CHECK(candidate->label() == "onnxruntime:graph=basic,threads=2");
  CHECK(Candidate::parse(candidate->label()).value() == *candidate);
}

TEST_CASE("Candidate: a value may hold anything but a comma") {
  const auto candidate = Candidate::parse("fake:path=/a b/c:d=e,empty=,name=模型");
  REQUIRE(candidate);
  CHECK(candidate->config.at("path") == "/a b/c:d=e");
  CHECK(candidate->config.at("empty") == "");
  CHECK(candidate->config.at("name") == "模型");
  CHECK(Candidate::parse(candidate->label()).value() == *candidate);
}

TEST_CASE("Candidate: what cannot be read is named, with the form it should have") {
  struct Case {
    std::string text, part;
  };
  const Case cases[] = {
      {"", "the name is missing"},
      {":threads=2", "the name is missing"},
      {"threads=2", "'threads=2' cannot be the name of a backend"},
      {"open vino", "'open vino' cannot be the name of a backend"},
      {"fake:", "no setting behind the ':'"},
      {"fake:threads", "the setting 'threads' has no '='"},
      {"fake:a=1,,b=2", "the setting '' has no '='"},
      {"fake:a=1,", "the setting '' has no '='"},
      {"fake:=1", "'' cannot be the name of a setting"},
      {"fake:a=1,a=2", "the setting 'a' is given twice"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto candidate = Candidate::parse(c.text);
    REQUIRE_FALSE(candidate);
    CHECK(candidate.error().code == Code::kInvalidArgument);
    CHECK(candidate.error().message == "backend '" + c.text + "': " + c.part);
    CHECK(candidate.error().hint.find("NAME:key=value,key=value") != std::string::npos);
  }
}

TEST_CASE("Candidate: whole numbers and truth values stand in JSON without quotes") {
  const auto candidate =
      Candidate::parse("fake:a=2,b=true,c=007,d=1e3,e=-4,f=99999999999999999999,g=x,h=1.50");
  REQUIRE(candidate);
  const Json json = candidate->config_json();
  CHECK(
      json.dump() ==
      R"({"a":2,"b":true,"c":"007","d":"1e3","e":-4,"f":"99999999999999999999","g":"x","h":"1.50"})");
  CHECK(Candidate::from_json(Json("fake"), json) == *candidate);
}

TEST_CASE("Candidate: a configuration written by hand may use JSON's own numbers") {
  const Json json = Json::object({{"ratio", 0.5}, {"on", false}});
  const Candidate candidate = Candidate::from_json(Json("fake"), json);
  CHECK(candidate.label() == "fake:on=false,ratio=0.5");
}

}  // namespace
}  // namespace hasten
