// SPDX-License-Identifier: Apache-2.0
#include "store/journal.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/files.h"
#include "base/test_support.h"
#include "base/text.h"

using namespace hasten;
using hasten::testing::folder_for;

namespace {

// Every line has to be a whole record.
std::vector<Json> records_in(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  REQUIRE(text);
  std::vector<Json> records;
  for (const std::string& line : split(*text, '\n')) {
    if (line.empty()) continue;
    const auto record = Json::parse(line);
    REQUIRE(record);
    REQUIRE(record->is_object());
    records.push_back(*record);
  }
  return records;
}

}  // namespace

TEST_CASE("Journal: records come back in order, with their kind and time") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  REQUIRE(journal->append("start", Json::object({{"model", "m.onnx"}})));
  REQUIRE(journal->append("trial", Json::object({{"kind", "not mine"}, {"n", 1}})));
  const std::vector<Json> records = records_in(journal->path());
  REQUIRE(records.size() == 2);
  CHECK(records[0]["kind"].as_string() == "start");
  CHECK(records[0]["model"].as_string() == "m.onnx");
  CHECK(records[0]["at"].as_string().size() == std::string_view("2026-01-31T12:34:56Z").size());
  CHECK(records[1]["kind"].as_string() == "trial");
  CHECK(records[1]["n"].as_int() == 1);
}

TEST_CASE("Journal: a line is in the file before append() returns") {
  const TemporaryFolder folder = folder_for("journal");
  auto journal = Journal::create(folder.path() / "j.jsonl");
  REQUIRE(journal);
  for (size_t n = 1; n <= 3; ++n) {
    REQUIRE(journal->append("trial", Json::object()));
    CHECK(records_in(journal->path()).size() == n);
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
  CHECK(records_in(journal->path()).size() == 200);
}

TEST_CASE("Journal: create() begins anew; a folder that is not there is named") {
  const TemporaryFolder folder = folder_for("journal");
  const auto path = folder.path() / "j.jsonl";
  REQUIRE(write_file_atomically(path, "old\n"));
  REQUIRE(Journal::create(path));
  CHECK(records_in(path).empty());
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
  const std::vector<Json> records = records_in(journal->path());
  REQUIRE(records.size() == 2);
  CHECK(records[1]["n"].as_int() == 2);
}

TEST_CASE("Journal: one at a time; the second leaves the first as it is") {
  const TemporaryFolder folder = folder_for("journal");
  const auto path = folder.path() / "j.jsonl";
  {
    auto first = Journal::create(path);
    REQUIRE(first);
    REQUIRE(first->append("trial", Json::object({{"n", 1}})));
    const auto second = Journal::create(path);
    REQUIRE_FALSE(second);
    CHECK(second.error().message == "another process is writing '" + path.string() + "'");
    CHECK(records_in(path).size() == 1);
    REQUIRE(first->append("trial", Json::object({{"n", 2}})));
    CHECK(records_in(path).size() == 2);
  }
  CHECK(Journal::create(path));
}
