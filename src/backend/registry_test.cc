// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"

namespace hasten {
namespace {

struct Folder {
  TemporaryFolder folder = *TemporaryFolder::create("registry-test");
  std::filesystem::path file(const std::string& name, const std::string& content = "") {
    std::ofstream(folder.path() / name) << content;
    return folder.path() / name;
  }
};

// For the time of one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

TEST_CASE_FIXTURE(Folder, "Registry: a library is known by the name of its file, and not loaded") {
  file("hasten_zeta.so", "no library at all");
  file("libother.so");
  file("hasten_.so");
  auto registry = Registry::scan({folder.path()});
  REQUIRE(registry);
  auto entry = registry->find("zeta");
  REQUIRE(entry);
  CHECK(entry->library == folder.path() / "hasten_zeta.so");
  CHECK(!registry->find("other"));
}

TEST_CASE_FIXTURE(Folder, "Registry: a program is known by its description") {
  file("hasten_prog.json",
       R"({"name":"prog","command":["{python}","-m","x"],"describe":{"title":"t"}})");
  auto registry = Registry::scan({folder.path()});
  REQUIRE(registry);
  auto entry = registry->find("prog");
  REQUIRE(entry);
  CHECK(entry->library.empty());
  CHECK(entry->command == std::vector<std::string>{"{python}", "-m", "x"});
  CHECK(entry->describe["title"].as_string() == "t");
}

TEST_CASE_FIXTURE(Folder, "Registry: a broken description is listed with its reason") {
  file("hasten_bad.json", "{");
  file("hasten_other.json", R"({"name":"another","command":["x"]})");
  auto registry = Registry::scan({folder.path()});
  REQUIRE(registry);
  for (const char* name : {"bad", "other"}) {
    auto entry = registry->find(name);
    REQUIRE(entry);
    CHECK(entry->command.empty());
    CHECK(entry->describe["error"].as_string().find("hasten_") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Folder, "Registry: what is no regular file is never opened, and says so") {
  for (const char* name : {"hasten_one.so", "hasten_two.json"}) {
    const auto pipe = folder.path() / name;
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto given = Registry::scan({pipe});
    REQUIRE_FALSE(given);
    CHECK(given.error().message == pipe.string() + ": is no regular file, but a pipe");
  }
  const auto registry = Registry::scan({folder.path()});
  REQUIRE(registry);
  const auto one = registry->find("one");
  REQUIRE(one);
  CHECK(one->library.empty());
  CHECK(one->describe["error"].as_string().ends_with("is no regular file, but a pipe"));
}

TEST_CASE("Registry: what the user names comes first, then HASTEN_PLUGIN_PATH") {
  Folder given, searched;
  const auto first = given.file("hasten_both.so");
  searched.file("hasten_both.so");
  const auto second = searched.file("hasten_only.so");
  const Variable path("HASTEN_PLUGIN_PATH", "/nowhere:" + searched.folder.path().string());
  auto registry = Registry::scan({first});
  REQUIRE(registry);
  CHECK(registry->find("both")->library == first);
  CHECK(registry->find("only")->library == second);
}

TEST_CASE_FIXTURE(Folder, "Registry: a given path that does not exist is an error that names it") {
  auto registry = Registry::scan({folder.path() / "hasten_gone.so"});
  REQUIRE(!registry);
  CHECK(registry.error().code == Code::kInvalidArgument);
  CHECK(registry.error().message.find("hasten_gone.so") != std::string::npos);
  CHECK(!Registry::scan({file("plugin.so")}));
}

TEST_CASE_FIXTURE(Folder,
                  "Registry: an unknown name is answered with the known ones, and the closest") {
  file("hasten_alphabet.so");
  auto registry = Registry::scan({folder.path()});
  REQUIRE(registry);
  auto entry = registry->find("alphabett");
  REQUIRE(!entry);
  CHECK(entry.error().code == Code::kInvalidArgument);
  CHECK(entry.error().message.find("alphabet") != std::string::npos);
  CHECK(entry.error().hint == "did you mean 'alphabet'?");
}

TEST_CASE_FIXTURE(Folder, "find_python: HASTEN_PYTHON wins, and must be a program") {
  const auto python = file("python");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  {
    const Variable variable("HASTEN_PYTHON", python.string());
    auto found = find_python();
    REQUIRE(found);
    CHECK(*found == python);
  }
  const Variable variable("HASTEN_PYTHON", (folder.path() / "gone").string());
  auto found = find_python();
  REQUIRE(!found);
  CHECK(found.error().code == Code::kUnavailable);
  CHECK(!found.error().hint.empty());
}

TEST_CASE_FIXTURE(Folder, "find_python: next is the interpreter that runs this process") {
  const auto python = file("python");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Variable none("HASTEN_PYTHON", "");
  prefer_python(python);
  CHECK(find_python().value() == python);
  prefer_python({});
}

TEST_CASE_FIXTURE(Folder, "python_package_folder: HASTEN_PYTHON_PACKAGES wins") {
  const Variable variable("HASTEN_PYTHON_PACKAGES", folder.path().string());
  CHECK(python_package_folder() == folder.path());
}

}  // namespace
}  // namespace hasten
