// SPDX-License-Identifier: Apache-2.0
// The C table from the host's side, with the fake plugin linked into this program.
#include "backend/library.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "../plugins/fake/fake.cc"
#include "base/files.h"

namespace hasten {
namespace {

BackendLibrary fake_library() {
  return BackendLibrary::from_table(*hasten_backend_entry(HASTEN_ABI_MAJOR, HASTEN_ABI_MINOR));
}

struct Fixture {
  TemporaryFolder folder = *TemporaryFolder::create("library-test");
  BackendLibrary library = fake_library();

  std::filesystem::path model(const std::string& lines) {
    const auto path = folder.path() / "model.fake";
    std::ofstream(path) << "hasten-model fake\n" << lines;
    return path;
  }
  Result<Executable> build(const std::string& lines,
                           std::map<std::string, std::string> config = {}) {
    return library.build(model(lines), "fake", Json::object(), {"fake", std::move(config)}, 1,
                         folder.path());
  }
};

// A backend that cannot be made: its library may be missing a file.
struct Unmade final : PluginBackend {
  Unmade() { throw PluginError(HASTEN_UNAVAILABLE, "no licence file\ninstall one"); }
  const Description& describe() override { std::abort(); }
  std::string probe(const hasten_device&) override { return "{}"; }
  std::vector<ConfigProposal> candidates(const hasten_model&, const hasten_device&) override {
    return {};
  }
  std::unique_ptr<PluginExecutable> build(const hasten_model&, const hasten_device&,
                                          const Options&, const std::string&) override {
    return nullptr;
  }
  std::unique_ptr<PluginExecutable> load(const std::string&, const hasten_device&) override {
    return nullptr;
  }
};

TEST_CASE("BackendLibrary: what a plugin's constructor throws is the answer of each call") {
  const auto library = BackendLibrary::from_table(
      *plugin_detail::table<Unmade>("unmade", "1", 0));
  for (int i = 0; i < 2; ++i) {
    const auto probed = library.probe(1);
    REQUIRE(!probed);
    CHECK(probed.error().code == Code::kUnavailable);
    CHECK(probed.error().message == "no licence file");
    CHECK(probed.error().hint == "install one");
  }
}

constexpr const char* kAffine = "function affine\ninput x float32[B,3]\noutput y float32[B,3]\n";

Tensor floats(std::vector<float> values, Shape shape) {
  return Tensor::from(std::span<const float>(values), shape);
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: a built model computes its function") {
  auto executable = build(kAffine);
  REQUIRE(executable);
  CHECK(executable->n_inputs() == 1);
  CHECK(executable->n_outputs() == 1);
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  std::array<Tensor, 1> y;
  REQUIRE(executable->run(std::array{x.view()}, y));
  CHECK(std::vector<float>(y[0].values<float>().begin(), y[0].values<float>().end()) ==
        std::vector<float>{3, 5, 7, 9, 11, 13});
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: a saved executable computes the same after load") {
  auto executable = build(kAffine);
  REQUIRE(executable);
  const auto dir = folder.path() / "saved";
  std::filesystem::create_directory(dir);
  REQUIRE(executable->save(dir));
  auto loaded = library.load(dir, 1);
  REQUIRE(loaded);
  const Tensor x = floats({0.5f, -1, 8}, {1, 3});
  std::array<Tensor, 1> y;
  REQUIRE(loaded->run(std::array{x.view()}, y));
  CHECK(y[0].values<float>()[2] == 17.0f);
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: an unknown option is refused with the known ones") {
  auto executable = build(kAffine, {{"thraeds", "2"}});
  REQUIRE(!executable);
  CHECK(executable.error().code == Code::kInvalidArgument);
  CHECK(executable.error().message.find("'thraeds'") != std::string::npos);
  CHECK(executable.error().message.find("threads") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: a value outside its type is refused") {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"threads", "two"}, {"fault", "other"}, {"noise", "0.1x"}, {"latency_us", "-1"}}) {
    CAPTURE(key);
    auto executable = build(kAffine, {{key, value}});
    REQUIRE(!executable);
    CHECK(executable.error().code == Code::kInvalidArgument);
    CHECK(executable.error().message.find("'" + key + "'") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: codes and messages of a failed build come through") {
  auto failed = build(kAffine, {{"fault", "build_fail"}});
  REQUIRE(!failed);
  CHECK(failed.error().code == Code::kBuildFailed);
  CHECK(failed.error().message == "fake: operator com.example::Foo is unknown");
  auto foreign = build(kAffine, {{"fault", "not_std_exception"}});
  REQUIRE(!foreign);
  CHECK(foreign.error().code == Code::kInternal);
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: bytes that are no UTF-8 do not reach a message") {
  auto failed = build(kAffine, {{"fault", "bad_utf8"}});
  REQUIRE(!failed);
  CHECK(failed.error().message == "fake: \uFFFD\uFFFD is no UTF-8");
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: the second line of an unavailable probe is the hint") {
  setenv("HASTEN_FAKE_PROBE", "unavailable", 1);
  auto facts = library.probe(1);
  unsetenv("HASTEN_FAKE_PROBE");
  REQUIRE(!facts);
  CHECK(facts.error().code == Code::kUnavailable);
  CHECK(facts.error().message == "switched off by HASTEN_FAKE_PROBE");
  CHECK(facts.error().hint == "unset HASTEN_FAKE_PROBE");
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: inspect gives the signature of its own format only") {
  auto signature =
      library.inspect(model("function sum_rows\ninput x int64[B,4]\noutput s int64[B]\n"), "fake");
  REQUIRE(signature);
  CHECK((*signature)["inputs"].items()[0]["name"].as_string() == "x");
  CHECK((*signature)["inputs"].items()[0]["shape"].items()[0].as_string() == "B");
  CHECK((*signature)["inputs"].items()[0]["shape"].items()[1].as_int() == 4);
  auto foreign = library.inspect(folder.path() / "m.onnx", "onnx");
  REQUIRE(!foreign);
  CHECK(foreign.error().code == Code::kUnsupported);
}

TEST_CASE_FIXTURE(Fixture, "BackendLibrary: one baseline for its own format, nothing for others") {
  auto own = library.candidates(folder.path() / "m.fake", "fake", 2);
  REQUIRE(own);
  CHECK(own->items()[0]["role"].as_string() == "baseline");
  CHECK(own->items()[1]["role"].as_string() == "default");
  auto foreign = library.candidates(folder.path() / "m.onnx", "onnx", 2);
  REQUIRE(foreign);
  CHECK(foreign->items().empty());
}

TEST_CASE_FIXTURE(Fixture, "Executable: a wrong number of tensors is refused before the plugin") {
  auto executable = build(kAffine);
  REQUIRE(executable);
  std::array<Tensor, 2> outputs;
  const Tensor x = floats({1, 2, 3}, {1, 3});
  const Status status = executable->run(std::array{x.view()}, outputs);
  REQUIRE(!status);
  CHECK(status.error().code == Code::kInvalidArgument);
}

TEST_CASE_FIXTURE(Fixture, "Executable: an output outlives the executable that made it") {
  std::array<Tensor, 1> y;
  {
    auto executable = build(kAffine);
    REQUIRE(executable);
    const Tensor x = floats({1, 1, 1}, {1, 3});
    REQUIRE(executable->run(std::array{x.view()}, y));
  }
  CHECK(y[0].values<float>()[0] == 3.0f);
}

TEST_CASE_FIXTURE(Fixture, "Executable: more outputs than fit on the stack are handed over") {
  std::string lines = "function identity\n";
  std::vector<Tensor> inputs, outputs(20);
  std::vector<DLTensor> views;
  for (int i = 0; i < 20; ++i) {
    lines += "input x" + std::to_string(i) + " float32[1]\n";
    lines += "output y" + std::to_string(i) + " float32[1]\n";
    inputs.push_back(floats({static_cast<float>(i)}, {1}));
    views.push_back(inputs.back().view());
  }
  auto executable = build(lines);
  REQUIRE(executable);
  REQUIRE(executable->run(views, outputs));
  CHECK(outputs[19].values<float>()[0] == 19.0f);
}

TEST_CASE("BackendLibrary: a file that is no library is unavailable, with the loader's reason") {
  auto folder = *TemporaryFolder::create("library-test");
  const auto path = folder.path() / "hasten_none.so";
  std::ofstream(path) << "no library";
  auto library = BackendLibrary::open(path);
  REQUIRE(!library);
  CHECK(library.error().code == Code::kUnavailable);
  CHECK(library.error().message.find("hasten_none.so") != std::string::npos);
}

TEST_CASE("BackendLibrary: a library without the entry is no plugin") {
  auto library = BackendLibrary::open("libz.so.1");
  REQUIRE(!library);
  CHECK(library.error().code == Code::kInvalidArgument);
  CHECK(library.error().message.find("hasten_backend_entry") != std::string::npos);
}

}  // namespace
}  // namespace hasten
