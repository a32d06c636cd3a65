// SPDX-License-Identifier: Apache-2.0
// What needs no package: packages suit one machine, so none is checked in. They are
// compiled and run by tests/python/inductor_test.py.
#include <doctest/doctest.h>

#include <fstream>

#include "plugin_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT

namespace {

const Plugin& plugin() {
  static const Plugin opened(HASTEN_TEST_PLUGIN);
  return opened;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("probe: names the version of libtorch") {
  CHECK(plugin().probe().says(R"("library_version":"2.)"));
}

TEST_CASE("candidates: for the formats that a compiler turns into a package") {
  CHECK(plugin().candidates("pt2", 2).says(R"({"role":"default","config":{}})"));
  CHECK(plugin().candidates("torchscript", 2).says(R"("freezing":"true")"));
  CHECK(
      plugin().candidates("pt2", 2).says(R"({"role":"lossy","config":{"quantization":"int8dq"}})"));
  CHECK(plugin().candidates("onnx", 2).text == "[]");
}

TEST_CASE("build: takes packages only, and only with the list of their inputs") {
  const TemporaryFolder folder;
  const std::string package = folder.path() / "model.pt2";
  write(package, "not a package");
  CHECK(plugin().build(package, {}, "pt2").answer().code == HASTEN_UNSUPPORTED);
  const Answer alone = plugin().build(package, {}, "aoti").answer();
  CHECK(alone.code == HASTEN_INVALID_ARGUMENT);
  CHECK(alone.says("model.pt2.inputs: cannot be read"));
}

TEST_CASE("build: a file that is no package is named, in one line") {
  const TemporaryFolder folder;
  const std::string package = folder.path() / "model.pt2";
  write(package, "not a package");
  write(package + ".inputs", "hasten-aoti 1\ncpu\ninput x float32 3\noutput y\n");
  const Answer answer = plugin().build(package, {}, "aoti").answer();
  CHECK(answer.code == HASTEN_INVALID_ARGUMENT);
  CHECK(answer.says("model.pt2 is no AOTInductor package"));
  CHECK(answer.text.find('\n') == answer.text.npos);
}

TEST_CASE("build: a package for another CPU is refused before any of its code is loaded") {
  const TemporaryFolder folder;
  const std::string package = folder.path() / "model.pt2";
  write(package, "not a package");
  write(package + ".inputs", "hasten-aoti 1\ncpu avx1024\ninput x float32 3\noutput y\n");
  const Answer answer = plugin().build(package, {}, "aoti").answer();
  CHECK(answer.code == HASTEN_UNAVAILABLE);
  CHECK(answer.says("compiled for a CPU with avx1024"));
}
