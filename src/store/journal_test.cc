// SPDX-License-Identifier: Apache-2.0
#include "store/journal.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/files.h"
#include "base/test_support.h"

using namespace hasten;
using hasten::testing::folder_for;

namespace {

// What read_journal makes of a file with this content.
Result<std::vector<Json>> read_text(std::string_view text) {
  const TemporaryFolder folder = folder_for("journal");
  HASTEN_TRY_STATUS(write_file_atomically(folder.path() / "j.jsonl", text));
  return read_journal(folder.path() / "j.jsonl");
}

}  // namespace

TEST_CASE("Journal: records come back in order, with their kind and time") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  REQUIRE(journal->append("start", Json::object({{"model", "m.onnx"}})));
  REQUIRE(journal->append("trial", Json::object({{"kind", "not mine"}, {"n", 1}})));
  const auto records = read_journal(journal->path());
  REQUIRE(records);
  REQUIRE(records->size() == 2);
  CHECK((*records)[0]["kind"].as_string() == "start");
  CHECK((*records)[0]["model"].as_string() == "m.onnx");
  CHECK((*records)[0]["at"].as_string().size() == std::string_view("2026-01-31T12:34:56Z").size());
  CHECK((*records)[1]["kind"].as_string() == "trial");
  CHECK((*records)[1]["n"].as_int() == 1);
}

TEST_CASE("Journal: a line is in the file before append() returns") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  for (size_t n = 1; n <= 3; ++n) {
    REQUIRE(journal->append("trial", Json::object()));
    CHECK(read_journal(journal->path())->size() == n);
  }
}

TEST_CASE("Journal: several threads do not tear each other's lines") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  const std::string long_text(5000, 'x');
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          static_cast<void>(journal->append("trial", Json::object({{"text", long_text}})));
        }
      });
    }
  }
  const auto records = read_journal(journal->path());
  REQUIRE(records);
  CHECK(records->size() == 200);
}

TEST_CASE("Journal: create() begins anew; a folder that is not there is named") {
  const TemporaryFolder folder = folder_for("journal");
  const auto path = folder.path() / "j.jsonl";
  REQUIRE(write_file_atomically(path, "old\n"));
  REQUIRE(Journal::create(path));
  CHECK(read_journal(path)->empty());
  const auto nowhere = Journal::create(folder.path() / "none" / "j.jsonl");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message.find("none") != std::string::npos);
}

TEST_CASE("Journal: a full disk fails the append and keeps whole lines") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  REQUIRE(journal->append("trial", Json::object({{"n", 1}})));
  {
    const testing::SmallDisk disk(4096);
    CHECK_FALSE(journal->append("trial", Json::object({{"text", std::string(8000, 'x')}})));
  }
  REQUIRE(journal->append("trial", Json::object({{"n", 2}})));
  const auto records = read_journal(journal->path());
  REQUIRE(records);
  REQUIRE(records->size() == 2);
  CHECK((*records)[1]["n"].as_int() == 2);
}

TEST_CASE("read_journal: a torn last line is ignored, at whatever byte it was torn") {
  const std::string line = R"({"kind":"trial","n":12})";
  for (size_t cut = 0; cut < line.size(); ++cut) {
    const auto records = read_text(line + "\n" + line.substr(0, cut));
    REQUIRE(records);
    CHECK(records->size() == 1);
  }
  CHECK(read_text(line + "\n" + line)->size() == 2);  // Only its newline is missing.
  CHECK(read_text("")->empty());
}

TEST_CASE("read_journal: damage before the end is an error with the line's number") {
  const auto records = read_text("{\"n\":1}\n{\"n\":\n{\"n\":3}\n");
  REQUIRE_FALSE(records);
  CHECK(records.error().message.find("line 2") != std::string::npos);
  CHECK_FALSE(read_text("7\n"));
}
