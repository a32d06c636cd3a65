// SPDX-License-Identifier: Apache-2.0
#include "backend/compilers.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/files.h"

namespace hasten {
namespace {

// Two ways from "a" to "d": one step of cost 5, or three of cost 1 each.
constexpr const char* kEntries = R"([
  {"name":"ab","from":"a","to":"b","module":"m","cost":1},
  {"name":"bc","from":"b","to":"c","module":"m","cost":1},
  {"name":"cd","from":"c","to":"d","module":"m","cost":1},
  {"name":"ad","from":"a","to":"d","module":"m","cost":5},
  {"name":"ba","from":"b","to":"a","module":"m","cost":1}
])";

struct Package {
  TemporaryFolder folder = *TemporaryFolder::create("compilers-test");
  explicit Package(const std::string& content) {
    const auto dir = folder.path() / "hasten" / "compilers";
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "compilers.json") << content;
  }
};

std::vector<std::string> names(const Result<std::vector<CompilerEntry>>& steps) {
  std::vector<std::string> result;
  for (const CompilerEntry& step : *steps) result.push_back(step.name);
  return result;
}

TEST_CASE("Compilers: the cheapest chain is taken, not the shortest") {
  const Package package(kEntries);
  auto compilers = Compilers::read(package.folder.path());
  REQUIRE(compilers);
  CHECK(names(compilers->chain("a", "d")) == std::vector<std::string>{"ab", "bc", "cd"});
  CHECK(names(compilers->chain("b", "d")) == std::vector<std::string>{"bc", "cd"});
}

TEST_CASE("Compilers: equal formats need no step, and cycles end") {
  const Package package(kEntries);
  auto compilers = Compilers::read(package.folder.path());
  REQUIRE(compilers);
  CHECK(names(compilers->chain("a", "a")).empty());
  auto none = compilers->chain("d", "a");
  REQUIRE(!none);
  CHECK(none.error().code == Code::kUnsupported);
}

TEST_CASE("Compilers: what a backend takes, as it is and converted") {
  const Package package(R"([{"name":"1","from":"torchscript","to":"pt2","module":"m"},
                            {"name":"2","from":"pt2","to":"aoti","module":"m"}])");
  auto compilers = Compilers::read(package.folder.path());
  REQUIRE(compilers);
  CHECK(compilers->taken({"onnx"}) == "ONNX .onnx");
  CHECK(compilers->taken({"aoti"}) ==
        "AOTInductor package (also converted from TorchScript .pt, torch.export .pt2)");
  CHECK(compilers->taken({"pt2", "onnx"}) ==
        "torch.export .pt2, ONNX .onnx (also converted from TorchScript .pt)");
  CHECK(*compilers->reachable("torchscript", {"aoti"}) == "aoti");
  CHECK(*compilers->reachable("onnx", {"pt2", "onnx"}) == "onnx");
  const auto none = compilers->reachable("onnx", {"aoti"});
  REQUIRE(!none);
  CHECK(none.error().code == Code::kUnsupported);
  CHECK(none.error().message ==
        "it takes AOTInductor package (also converted from TorchScript .pt, torch.export .pt2), "
        "and this model is ONNX .onnx");
}

TEST_CASE("Compilers: without the Python package there is no chain, and the message says why") {
  auto folder = *TemporaryFolder::create("compilers-test");
  auto compilers = Compilers::read(folder.path());
  REQUIRE(compilers);
  CHECK(names(compilers->chain("onnx", "onnx")).empty());
  auto none = compilers->chain("pt2", "onnx");
  REQUIRE(!none);
  CHECK(none.error().message.find("compilers.json does not exist") != std::string::npos);
}

TEST_CASE("Compilers: a broken list is an error that names the file") {
  for (const char* content :
       {"[", R"([{"name":"x"}])", R"([{"name":"x","from":"a","to":"b","module":"m","cost":0}])"}) {
    CAPTURE(content);
    const Package package(content);
    auto compilers = Compilers::read(package.folder.path());
    REQUIRE(!compilers);
    CHECK(compilers.error().message.find("compilers.json") != std::string::npos);
  }
}

}  // namespace
}  // namespace hasten
