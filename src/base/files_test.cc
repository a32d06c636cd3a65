// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/test_support.h"
#include "base/text.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;
using testing::count_files;
using testing::folder_for;
using testing::ScopedVariable;
using testing::SmallDisk;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The id of a process that has ended and been reaped.
pid_t dead_pid() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

TEST_CASE("read_file: gives every byte, of files that claim to be empty too") {
  const TemporaryFolder folder = folder_for("files");
  const std::string bytes = std::string("a\0b\n", 4) + std::string(100'000, 'x');
  std::ofstream(folder.path() / "f", std::ios::binary) << bytes;
  const auto read = read_file(folder.path() / "f");
  REQUIRE(read);
  CHECK(*read == bytes);
  const auto proc = read_file("/proc/self/status");
  REQUIRE(proc);
  CHECK(proc->starts_with("Name:"));
  std::ofstream(folder.path() / "empty");
  const auto empty = read_file(folder.path() / "empty");
  REQUIRE(empty);
  CHECK(empty->empty());
}

TEST_CASE("read_prefix: stops at the limit or at the end") {
  const TemporaryFolder folder = folder_for("files");
  std::ofstream(folder.path() / "f") << "0123456789";
  CHECK(*read_prefix(folder.path() / "f", 4) == "0123");
  CHECK(*read_prefix(folder.path() / "f", 10) == "0123456789");
  CHECK(*read_prefix(folder.path() / "f", 99) == "0123456789");
  CHECK(read_prefix(folder.path() / "f", 0)->empty());
}

TEST_CASE("what is no regular file is refused at once, whoever is at its other end") {
  const TemporaryFolder folder = folder_for("files");
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const fs::path link = folder.path() / "link";
  fs::create_symlink("pipe", link);
  const fs::path socket = folder.path() / "socket";
  REQUIRE(::mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0);
  const auto check = [](const fs::path& path, const std::string& message) {
    for (const Error& error :
         {read_file(path).error(), read_prefix(path, 4).error(), check_is_file(path).error(),
          open_regular_file(path, O_WRONLY | O_APPEND).error()}) {
      CHECK(error.code == Code::kInvalidArgument);
      CHECK(error.message == path.string() + message);
      CHECK(error.hint.find("copy the content into a regular file") != std::string::npos);
    }
  };
  check(pipe, ": is no regular file, but a pipe");
  check(link, ": is no regular file, but a pipe");
  check(socket, ": is no regular file, but a socket");
  check("/dev/null", ": is no regular file, but a device");
}

TEST_CASE("open_regular_file: opens a file for reading and writing as open() does") {
  const TemporaryFolder folder = folder_for("files");
  const fs::path file = folder.path() / "f";
  const auto writer = open_regular_file(file, O_WRONLY | O_CREAT | O_APPEND);
  REQUIRE(writer);
  REQUIRE(write_all(*writer, "text", file));
  CHECK(*read_file(file) == "text");
  CHECK(open_regular_file(folder.path() / "none", O_RDONLY).error().code == Code::kIo);
}

TEST_CASE("write_file_atomically: a pipe without a reader, a socket and a disk are refused") {
  const TemporaryFolder folder = folder_for("files");
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(write_file_atomically(pipe, "x").error().message ==
        pipe.string() + ": is a pipe that nobody reads");
  const fs::path socket = folder.path() / "socket";
  REQUIRE(::mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0);
  CHECK(write_file_atomically(socket, "x").error().message ==
        socket.string() + ": is no regular file, but a socket");
}

TEST_CASE("read_file: errors name the path and the reason") {
  const auto missing = read_file("/no/such/模型.onnx");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kIo);
  CHECK(missing.error().message == "reading '/no/such/模型.onnx': No such file or directory");
  const auto folder = read_file("/");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message == "/: is a folder, not a file");
}

TEST_CASE("check_is_file, check_has_folder: a name that leads nowhere is the caller's mistake") {
  const TemporaryFolder folder = folder_for("files");
  std::ofstream(folder.path() / "f") << "x";
  CHECK(check_is_file(folder.path() / "f"));
  CHECK(check_is_file(folder.path() / "g").error().code == Code::kInvalidArgument);
  CHECK(check_is_file(folder.path()).error().code == Code::kInvalidArgument);
  CHECK(check_has_folder(folder.path() / "g"));
  CHECK(check_has_folder("g"));
  CHECK(check_has_folder(folder.path()).error().code == Code::kInvalidArgument);
  const Status nowhere = check_has_folder(folder.path() / "no" / "g");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == Code::kInvalidArgument);
  CHECK(nowhere.error().message.find("/no") != std::string::npos);
}

TEST_CASE("write_file_atomically: replaces the content and leaves nothing else behind") {
  const TemporaryFolder folder = folder_for("files");
  const fs::path file = folder.path() / "it's $a 模型";
  REQUIRE(write_file_atomically(file, "one"));
  REQUIRE(write_file_atomically(file, "two"));
  CHECK(content_of(file) == "two");
  CHECK(count_files(folder.path()) == 1);
  // A name as long as the file system allows leaves no room for a suffix.
  REQUIRE(write_file_atomically(folder.path() / std::string(255, 'n'), "x"));
}

TEST_CASE("write_file_atomically: a write that fails leaves the old file and no other") {
  const TemporaryFolder folder = folder_for("files");
  const fs::path file = folder.path() / "f";
  REQUIRE(write_file_atomically(file, "old"));
  const SmallDisk disk(1000);
  const Status written = write_file_atomically(file, std::string(5000, 'x'));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == Code::kIo);
  CHECK(written.error().message == "writing '" + file.string() + "': File too large");
  CHECK(content_of(file) == "old");
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("write_file_atomically: a full disk is said in the system's words, with a remedy") {
  const Status written = write_file_atomically("/dev/full", "x");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == Code::kIo);
  CHECK(written.error().message == "writing '/dev/full': No space left on device");
  CHECK(written.error().hint.find("free some space") != std::string::npos);
}

TEST_CASE("write_file_atomically: a device stays a device, a link stays a link") {
  REQUIRE(write_file_atomically("/dev/null", "x"));
  CHECK(fs::is_character_file("/dev/null"));
  const TemporaryFolder folder = folder_for("files");
  fs::create_directory(folder.path() / "real");
  const fs::path link = folder.path() / "link";
  fs::create_symlink("real/f", link);
  REQUIRE(write_file_atomically(link, "through a dangling link"));
  REQUIRE(write_file_atomically(link, "again"));
  CHECK(fs::is_symlink(link));
  CHECK(content_of(folder.path() / "real" / "f") == "again");
}

TEST_CASE("write_file_atomically: a folder and a missing folder are errors that name the path") {
  const TemporaryFolder folder = folder_for("files");
  const Status onto = write_file_atomically(folder.path(), "x");
  REQUIRE_FALSE(onto);
  CHECK(onto.error().message == "writing '" + folder.path().string() + "': Is a directory");
  const Status into = write_file_atomically("/no/such/f", "x");
  REQUIRE_FALSE(into);
  CHECK(into.error().message == "writing '/no/such/f': No such file or directory");
}

TEST_CASE("make_folder: makes the parents, takes an existing folder, refuses a file") {
  const TemporaryFolder folder = folder_for("files");
  REQUIRE(make_folder(folder.path() / "a" / "b"));
  REQUIRE(make_folder(folder.path() / "a" / "b"));
  CHECK(fs::is_directory(folder.path() / "a" / "b"));
  REQUIRE(write_file_atomically(folder.path() / "f", ""));
  for (const char* path : {"f", "f/x"}) {
    const Status made = make_folder(folder.path() / path);
    REQUIRE_FALSE(made);
    CHECK(made.error().message.find("Not a directory") != std::string::npos);
  }
}

TEST_CASE("check_writable: says yes without a trace, and no with the reason") {
  const TemporaryFolder folder = folder_for("files");
  CHECK(check_writable(folder.path()));
  CHECK(count_files(folder.path()) == 0);
  const Status missing = check_writable("/no/such");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message == "writing into folder '/no/such': No such file or directory");
  // Nobody, root included, can create a file in /proc.
  CHECK_FALSE(check_writable("/proc"));
}

TEST_CASE("TemporaryFolder: vanishes with all that is in it") {
  fs::path path;
  {
    const TemporaryFolder folder = folder_for("a purpose/x");
    path = folder.path();
    CHECK(path.filename().string().starts_with("hasten-" + std::to_string(::getpid()) +
                                               "-a_purpose_x-"));
    CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms::owner_all);
    fs::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "f") << "x";
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("TemporaryFolder: moving hands it over, and removes what the target held") {
  TemporaryFolder a = folder_for("a");
  TemporaryFolder b = folder_for("b");
  const fs::path of_a = a.path(), of_b = b.path();
  a = std::move(b);
  CHECK_FALSE(fs::exists(of_a));
  CHECK(fs::exists(of_b));
  CHECK(a.path() == of_b);
}

TEST_CASE("TemporaryFolder: what a dead process left is removed, all else stays") {
  const TemporaryFolder root = folder_for("root");
  const ScopedVariable variable("TMPDIR", root.path().string());
  const std::string dead = std::to_string(dead_pid());
  const std::string alive = std::to_string(::getppid());
  const fs::path gone = root.path() / ("hasten-" + dead + "-build-abcdef");
  const fs::path locked = root.path() / ("hasten-" + dead + "-build-locked");
  const fs::path running = root.path() / ("hasten-" + alive + "-build-abcdef");
  const fs::path foreign = root.path() / ("other-" + dead + "-build-abcdef");
  const fs::path file = root.path() / ("hasten-" + dead + "-file-abcdef");
  for (const fs::path& path : {gone, locked, running, foreign}) fs::create_directories(path / "x");
  std::ofstream(file) << "x";
  // Its owner lives where the process id means something else.
  const auto lock = open_file(locked, O_RDONLY | O_DIRECTORY);
  REQUIRE(lock);
  REQUIRE(::flock(lock->get(), LOCK_EX) == 0);

  const TemporaryFolder next = folder_for("next");
  CHECK(next.path().parent_path() == root.path());
  CHECK_FALSE(fs::exists(gone));
  for (const fs::path& path : {locked, running, foreign, file}) CHECK(fs::exists(path));
}

TEST_CASE("TemporaryFolder: an unusable TMPDIR is an error with the remedy") {
  const ScopedVariable variable("TMPDIR", "/no/such/folder");
  const auto folder = TemporaryFolder::create("x");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().code == Code::kIo);
  CHECK(folder.error().message.find("'/no/such/folder'") != std::string::npos);
  CHECK(folder.error().hint.find("TMPDIR") != std::string::npos);
}

TEST_CASE("own_binary: is the program that runs the test") {
  CHECK(own_binary() == fs::canonical("/proc/self/exe"));
}

TEST_CASE("command_path: HASTEN_COMMAND wins, and must be a program") {
  {
    const ScopedVariable variable("HASTEN_COMMAND", "/bin/sh");
    const auto path = command_path();
    REQUIRE(path);
    CHECK(*path == "/bin/sh");
  }
  const ScopedVariable variable("HASTEN_COMMAND", "/etc/passwd");
  const auto path = command_path();
  REQUIRE_FALSE(path);
  CHECK(path.error().code == Code::kUnavailable);
  CHECK(path.error().message == "HASTEN_COMMAND names '/etc/passwd', which is no program");
  CHECK_FALSE(path.error().hint.empty());
}

}  // namespace
}  // namespace hasten
