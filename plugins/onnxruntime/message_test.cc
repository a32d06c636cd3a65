// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include <doctest/doctest.h>

using namespace hasten;

// The messages are those of ONNX Runtime 1.22 to 1.27.
TEST_CASE("the place in ONNX Runtime's source is no part of a message") {
  CHECK(without_source_places(
            "Load model from m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:256 "
            "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, const "
            "onnxruntime::logging::Logger&) Unsupported model IR version: 99, max supported IR "
            "version: 14\n") ==
        "Load model from m.onnx failed:Unsupported model IR version: 99, max supported IR "
        "version: 14");
  CHECK(without_source_places(
            "/src/core/graph/model_load_utils.h:46 void onnxruntime::ValidateOpsetForDomain(const "
            "std::unordered_map<std::__cxx11::basic_string<char>, int>&, bool) ONNX Runtime only "
            "*guarantees*") == "ONNX Runtime only *guarantees*");
  CHECK(without_source_places(
            "Status Message: /src/a/b.h:91 T f<void (*)(int)>::operator()(const T&) const [with T "
            "= float (*)[2]] x == y was false. Shape:{3}") ==
        "Status Message: x == y was false. Shape:{3}");
  CHECK(without_source_places("/src/a.cc:1 f()::<lambda(int)> one /src/b.cc:22 g(int) two") ==
        "one two");
}

TEST_CASE("what is no place in the source stays") {
  for (const char* text :
       {"Load model from /models/model.cc failed:File doesn't exist",
        "Node input 'nobody' is not a graph input (or output)", "a.onnx: it costs 3:4", ""}) {
    CHECK(without_source_places(text) == text);
  }
  CHECK(without_source_places("/src/a.cc:12 and no more") == "and no more");
}

TEST_CASE("a model that is too new: what it may have at most, or a newer ONNX Runtime") {
  CHECK(remedy_for("Current official support for domain ai.onnx is till opset 28.") ==
        "export the model again with an opset of at most 28, or install a newer ONNX Runtime: "
        "pip install --upgrade onnxruntime");
  CHECK(remedy_for("Unsupported model IR version: 99, max supported IR version: 14")
            .starts_with("save the model again with an ir_version of at most 14, "));
  CHECK(remedy_for("Invalid model.").empty());
}
