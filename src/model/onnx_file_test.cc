// SPDX-License-Identifier: Apache-2.0
#include "model/onnx_file.h"

#include <doctest/doctest.h>
#include <hasten/plugin_onnx_wire.hpp>

#include <fstream>
#include <random>

#include "base/test_support.h"
#include "model/onnx_test_file.h"

using namespace hasten;
using namespace hasten::testing;
namespace fs = std::filesystem;

namespace {

Result<OnnxFile> read_bytes(std::string_view bytes) {
  const TemporaryFolder folder = folder_for("onnx");
  const fs::path path = folder.path() / "m.onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  return read_onnx(path);
}

// A node with one attribute of a graph (field 6).
std::string node_with_graph(const std::string& graph) {
  return bytes_field(4, "If") +
         bytes_field(5, bytes_field(1, "then_branch") + bytes_field(6, graph));
}

std::vector<std::string> external_tensors(const OnnxParts& parts) {
  const auto file = read_bytes(onnx_file(parts));
  REQUIRE_MESSAGE(file, file.error().message);
  std::vector<std::string> names;
  for (const OnnxExternalData& data : file->external_data) names.push_back(data.tensor);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("read_onnx: names, opsets and producer; initializers are no inputs") {
  OnnxParts parts;
  parts.inputs = {"x", "w", "z"};
  parts.outputs = {"y", "h"};
  parts.initializers = {tensor_bytes("w", "abcd")};
  parts.more = bytes_field(8, bytes_field(1, "com.microsoft") + varint_field(2, 1));
  const auto file = read_bytes(onnx_file(parts));
  REQUIRE(file);
  CHECK(file->ir_version == 8);
  CHECK(file->producer == "pytorch");
  CHECK(file->inputs == Names{"x", "z"});
  CHECK(file->outputs == Names{"y", "h"});
  CHECK(file->opsets ==
        std::vector<std::pair<std::string, int64_t>>{{"", 17}, {"com.microsoft", 1}});
  CHECK(file->external_data.empty());
}

TEST_CASE("read_onnx: external data is found wherever a tensor may stand") {
  const std::string tensor = tensor_external("t", {{"location", "f"}, {"offset", "4"}});
  OnnxParts inner, parts;
  SUBCASE("initializer") { parts.initializers = {tensor}; }
  SUBCASE("attribute") { parts.nodes = {bytes_field(5, bytes_field(5, tensor))}; }
  SUBCASE("list of tensors in an attribute") {
    parts.nodes = {bytes_field(5, bytes_field(10, tensor))};
  }
  SUBCASE("initializer of a subgraph of a subgraph") {
    inner.initializers = {tensor};
    OnnxParts middle;
    middle.nodes = {node_with_graph(onnx_graph(inner))};
    parts.nodes = {node_with_graph(onnx_graph(middle))};
  }
  SUBCASE("sparse attribute") {
    parts.nodes = {bytes_field(5, bytes_field(22, bytes_field(1, tensor)))};
  }
  SUBCASE("function") {
    parts.more = bytes_field(25, bytes_field(7, bytes_field(5, bytes_field(5, tensor))));
  }
  SUBCASE("training graph") {
    inner.initializers = {tensor};
    parts.more = bytes_field(20, bytes_field(2, onnx_graph(inner)));
  }
  CHECK(external_tensors(parts) == Names{"t"});
}

TEST_CASE("read_onnx: offset and length of external data") {
  OnnxParts parts;
  parts.initializers = {
      tensor_external("a", {{"location", "f"}, {"offset", "4096"}, {"length", "12"}}),
      tensor_external("b", {{"location", "f"}, {"checksum", "x"}, {"length", "0"}})};
  const auto file = read_bytes(onnx_file(parts));
  REQUIRE(file);
  CHECK(file->external_data[0].offset == 4096);
  CHECK(file->external_data[0].length == 12);
  CHECK(file->external_data[1].offset == 0);
  CHECK_FALSE(file->external_data[1].length);
}

TEST_CASE("read_onnx: what every ONNX model must have") {
  CHECK(read_bytes(varint_field(1, 8) + bytes_field(7, "")).error().message == "has no opset");
  CHECK(read_bytes(varint_field(1, 2) + bytes_field(7, "")));  // Before opsets were asked for.
  CHECK(read_bytes(varint_field(1, 8)).error().message == "has no graph");
  CHECK(read_bytes(bytes_field(7, "")).error().message == "has no IR version");
  CHECK_FALSE(read_bytes(varint_field(1, 8) + bytes_field(7, "") + bytes_field(9, "")));
  CHECK_FALSE(read_bytes(bytes_field(1, "x") + bytes_field(7, "")));
}

TEST_CASE("read_onnx: a length beyond the file, or beyond its own message, is refused") {
  const std::string model = varint_field(1, 8);
  CHECK(read_bytes(model + "\x3a" + varint(1 << 20) + "abc").error().message ==
        "at byte 2: field 7 claims 1048576 bytes, but only 3 are left");
  // A node that ends behind its graph.
  CHECK_FALSE(read_bytes(model +
                         bytes_field(7,
                                     "\x0a\x05"
                                     "ab") +
                         "abcdefgh"));
  CHECK_FALSE(read_bytes(model + "\x3a" + varint(~uint64_t{0})));
  CHECK_FALSE(read_bytes(model + "\x3a" + std::string(11, '\xff')));
}

// A model whose graphs lie in one another, `depth` of them below the outermost.
std::string nested_model(int depth) {
  OnnxParts parts;
  std::string graph;
  for (int i = 1; i < depth; ++i) graph = bytes_field(1, node_with_graph(graph));
  parts.nodes = {node_with_graph(graph)};
  return onnx_file(parts);
}

TEST_CASE("read_onnx: graphs nested without end are refused, not followed") {
  CHECK(read_bytes(nested_model(64)));
  const auto file = read_bytes(nested_model(65));
  REQUIRE_FALSE(file);
  CHECK(file.error().message.find("nested") != std::string::npos);
}

// Plugins have a reader of their own, as they see nothing of this code. Where the two disagree a
// model is recognised that no backend takes, or is not shown to one that would.
TEST_CASE("read_onnx: the reader that plugins use sees the same in a file") {
  const auto theirs = [](const std::string& bytes) {
    return hasten::plugin_detail::OnnxWalk().model(bytes);
  };
  CHECK_NOTHROW(theirs(nested_model(64)));
  CHECK_THROWS_AS(theirs(nested_model(65)), std::invalid_argument);
  OnnxParts parts;
  parts.inputs = {"x", "w", "z"};
  parts.outputs = {"y", "h"};
  parts.initializers = {tensor_bytes("w", "abcd"),
                        tensor_external("v", {{"location", "weights.bin"}})};
  const auto own = read_bytes(onnx_file(parts));
  REQUIRE(own);
  const OnnxDeclaration other = theirs(onnx_file(parts));
  const auto names_of = [](const std::vector<OnnxValue>& values) {
    Names names;
    for (const OnnxValue& value : values) names.push_back(value.name);
    return names;
  };
  CHECK(names_of(other.inputs) == own->inputs);
  CHECK(names_of(other.outputs) == own->outputs);
  CHECK(other.opset == own->opsets.at(0).second);
  REQUIRE(own->external_data.size() == 1);
  CHECK(other.external == Names{own->external_data[0].location});
  const std::string whole = onnx_file(parts);
  for (size_t size = 1; size < whole.size(); size += 7) {
    CAPTURE(size);
    // What is cut off in the middle of a field is whole for neither.
    const std::string part = whole.substr(0, size);
    bool taken = true;
    try {
      theirs(part);
    } catch (const std::invalid_argument&) {
      taken = false;
    }
    if (read_bytes(part)) CHECK(taken);
  }
}

TEST_CASE("read_onnx: random bytes and random damage never crash, and seldom pass") {
  std::mt19937 random(1);
  size_t passed = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes(64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    passed += read_bytes(bytes).has_value();
  }
  CHECK(passed == 0);
  OnnxParts parts;
  parts.nodes = {node_with_graph(onnx_graph({}))};
  parts.initializers = {tensor_bytes("w", std::string(64, 'w'))};
  const std::string whole = onnx_file(parts);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    static_cast<void>(read_bytes(bytes));
  }
}

TEST_CASE("read_onnx: weights are skipped, not read") {
  const TemporaryFolder folder = folder_for("onnx");
  const fs::path path = folder.path() / "large.onnx";
  // Eight gigabytes of weights as a hole in the file.
  constexpr uint64_t kHole = uint64_t{8} << 30;
  const std::string raw_tag = varint(9 << 3 | 2) + varint(kHole);
  const std::string tensor_tag = varint(5 << 3 | 2) + varint(raw_tag.size() + kHole);
  const std::string graph_tag =
      varint(7 << 3 | 2) + varint(tensor_tag.size() + raw_tag.size() + kHole);
  const std::string head =
      varint_field(1, 8) + bytes_field(8, varint_field(2, 17)) + graph_tag + tensor_tag + raw_tag;
  std::ofstream(path, std::ios::binary) << head;
  fs::resize_file(path, head.size() + kHole);
  CHECK(read_onnx(path));
}
