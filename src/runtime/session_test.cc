// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <hasten/runtime.h>

#include "base/test_support.h"
#include "store/artifact.h"

using namespace hasten;
using hasten::testing::folder_for;

namespace {

Status write_one(const std::filesystem::path& folder, const std::string& backend) {
  HASTEN_TRY_STATUS(make_folder(folder / "payload"));
  HASTEN_TRY_STATUS(write_file_atomically(folder / "payload" / "model", "x"));
  Manifest manifest;
  manifest.payloads = {{"payload/0", {backend, {}}, "", {}}};
  manifest.graphs.resize(1);
  manifest.graphs[0].spec.inputs = {{"x", DType::kFloat32, {}}};
  manifest.graphs[0].routes = {{"payload/0", {}}};
  return write_artifact(folder / "m.hasten", manifest, {{"payload/0", folder / "payload"}}, {});
}

}  // namespace

TEST_CASE("Session: a file that is missing or no artifact is named") {
  const TemporaryFolder folder = folder_for("session");
  const auto missing = Session::load(folder.path() / "none.hasten");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("none.hasten") != std::string::npos);
  REQUIRE(write_file_atomically(folder.path() / "text.hasten", "no zip"));
  const auto text = Session::load(folder.path() / "text.hasten");
  REQUIRE_FALSE(text);
  CHECK(text.error().message.find("text.hasten") != std::string::npos);
}

TEST_CASE("Session: a backend that is not installed is named, with the file") {
  const TemporaryFolder folder = folder_for("session");
  REQUIRE(write_one(folder.path(), "no-such-backend"));
  const auto session = Session::load(folder.path() / "m.hasten");
  REQUIRE_FALSE(session);
  CHECK(session.error().code == Code::kUnavailable);
  CHECK(session.error().message.find("m.hasten") != std::string::npos);
  CHECK(session.error().message.find("no-such-backend") != std::string::npos);
  CHECK_FALSE(session.error().hint.empty());
}

TEST_CASE("Session: a plugin file that does not load is the reason") {
  const TemporaryFolder folder = folder_for("session");
  REQUIRE(write_one(folder.path(), "broken"));
  REQUIRE(write_file_atomically(folder.path() / "hasten_broken.so", "no library"));
  const auto session = Session::load(folder.path() / "m.hasten", {.plugin_dirs = {folder.path()}});
  REQUIRE_FALSE(session);
  CHECK(session.error().message.find("hasten_broken.so") != std::string::npos);
}
