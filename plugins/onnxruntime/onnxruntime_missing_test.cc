// SPDX-License-Identifier: Apache-2.0
// A program of its own: a library that was opened once stays open.
#include <doctest/doctest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin_test_support.h"

using namespace hasten;        // NOLINT
using namespace hasten::test;  // NOLINT

TEST_CASE("without the library the plugin describes and inspects, and says what is missing") {
  const Plugin plugin(HASTEN_TEST_PLUGIN);
  const std::string affine = std::string(HASTEN_TEST_DATA) + "/affine.onnx";
  REQUIRE(setenv("HASTEN_ONNXRUNTIME_LIBRARY", "/nowhere/libonnxruntime.so", 1) == 0);
  CHECK(plugin.describe().code == HASTEN_OK);
  CHECK(plugin.inspect(affine).code == HASTEN_OK);
  CHECK(plugin.candidates("onnx", 1).code == HASTEN_OK);

  const Answer missing = plugin.probe();
  CHECK(missing.code == HASTEN_UNAVAILABLE);
  CHECK(missing.says("/nowhere/libonnxruntime.so: cannot open shared object file"));
  CHECK(missing.says("\n`pip install onnxruntime`"));
  CHECK(plugin.build(affine).answer().code == HASTEN_UNAVAILABLE);

  REQUIRE(setenv("HASTEN_ONNXRUNTIME_LIBRARY", "libm.so.6", 1) == 0);
  const Answer another = plugin.probe();
  CHECK(another.code == HASTEN_UNAVAILABLE);
  CHECK(another.says("libm.so.6 has no OrtGetApiBase"));

  const std::string pipe = "/tmp/hasten-no-library-" + std::to_string(getpid());
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(setenv("HASTEN_ONNXRUNTIME_LIBRARY", pipe.c_str(), 1) == 0);
  CHECK(plugin.probe().says(pipe + " is no regular file"));
  CHECK(unlink(pipe.c_str()) == 0);

  // The reason is looked for anew: it may have been cured.
  REQUIRE(unsetenv("HASTEN_ONNXRUNTIME_LIBRARY") == 0);
  CHECK(plugin.probe().code == HASTEN_OK);
}
