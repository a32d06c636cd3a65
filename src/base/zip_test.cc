// SPDX-License-Identifier: Apache-2.0
#include "base/zip.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/test_support.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;
using testing::count_files;
using testing::folder_for;
using testing::SmallDisk;

// An archive put together by hand, byte by byte after APPNOTE.TXT, so that neither our
// writer nor libzip decides what a bad one looks like.
struct RawEntry {
  std::string name;
  std::string stored;  // As it lies in the file.
  uint32_t mode = 0100644;
  uint16_t method = 0;   // 0 stored, 8 deflated.
  int64_t size = -1;     // As claimed; -1: of `stored`.
  uint32_t crc_off = 0;  // Added to the right CRC of `stored`.
  uint32_t crc = 0;      // For deflated entries: of the content.
};

uint32_t crc32(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string raw_zip(const std::vector<RawEntry>& entries) {
  std::string out, central;
  for (const RawEntry& e : entries) {
    const uint64_t size = e.size < 0 ? e.stored.size() : static_cast<uint64_t>(e.size);
    const uint32_t crc = (e.crc ? e.crc : crc32(e.stored)) + e.crc_off;
    const std::string common = little(20, 2) + little(0x800, 2) + little(e.method, 2) +
                               little(0, 2) + little(0x21, 2) + little(crc, 4) +
                               little(e.stored.size(), 4) + little(size, 4) +
                               little(e.name.size(), 2) + little(0, 2);
    central += "PK\x01\x02" + little(0x0314, 2) + common + little(0, 6) +
               little(uint64_t{e.mode} << 16, 4) + little(out.size(), 4) + e.name;
    out += "PK\x03\x04" + common + e.name + e.stored;
  }
  const std::string end = "PK\x05\x06" + little(0, 4) + little(entries.size(), 2) +
                          little(entries.size(), 2) + little(central.size(), 4) +
                          little(out.size(), 4) + little(0, 2);
  return out + central + end;
}

class Archive {
 public:
  explicit Archive(std::string_view bytes) : folder_(folder_for("zip")) {
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  fs::path path() const { return folder_.path() / "a.zip"; }
  fs::path folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

std::string bytes_of(const fs::path& path) {
  const auto bytes = read_file(path);
  REQUIRE(bytes);
  return *bytes;
}

void check_refused(const Archive& archive, std::string_view part) {
  const auto reader = ZipReader::open(archive.path());
  REQUIRE_FALSE(reader);
  CHECK(reader.error().code == Code::kInvalidArgument);
  CHECK(reader.error().message.find("a.zip") != std::string::npos);
  CAPTURE(reader.error().message);
  CHECK(reader.error().message.find(part) != std::string::npos);
}

TEST_CASE("ZipReader: reads stored and deflated entries of another tool's archive") {
  // zlib.compressobj(9, zlib.DEFLATED, -15) over b"aaaaaaaaaa" gives 4b4c840100.
  const Archive archive(raw_zip({{.name = "sub/a", .stored = "hello"},
                                 {.name = "模型",
                                  .stored = std::string("\x4b\x4c\x84\x01\x00", 5),
                                  .method = 8,
                                  .size = 10,
                                  .crc = 0x4c11cdf0}}));
  const auto reader = ZipReader::open(archive.path());
  REQUIRE(reader);
  REQUIRE(reader->entries().size() == 2);
  CHECK(reader->entries()[0].name == "sub/a");
  CHECK(reader->entries()[1].size_bytes == 10);
  CHECK(reader->contains("模型"));
  CHECK_FALSE(reader->contains("sub"));
  CHECK(*reader->read("sub/a", 5) == "hello");
  const auto deflated = reader->read("模型", 100);
  REQUIRE(deflated);
  CHECK(*deflated == "aaaaaaaaaa");
}

TEST_CASE("ZipReader: folders are not listed, empty archives are fine") {
  const Archive archive(
      raw_zip({{.name = "d/", .stored = "", .mode = 040755}, {.name = "d/a", .stored = "x"}}));
  const auto reader = ZipReader::open(archive.path());
  REQUIRE(reader);
  REQUIRE(reader->entries().size() == 1);
  CHECK(reader->entries()[0].name == "d/a");
  const Archive empty(raw_zip({}));
  const auto nothing = ZipReader::open(empty.path());
  REQUIRE(nothing);
  CHECK(nothing->entries().empty());
}

TEST_CASE("ZipReader: names that lead outside or are ambiguous are refused") {
  for (const char* name :
       {"/etc/passwd", "../a", "a/../../b", "a/..", "./a", "a//b", "..", "/", "//"}) {
    CAPTURE(name);
    check_refused(Archive(raw_zip({{.name = name, .stored = "x"}})), "has a name that");
  }
  // Two dots inside a name are just a name.
  CHECK(ZipReader::open(Archive(raw_zip({{.name = "a..b/..c", .stored = "x"}})).path()));
}

TEST_CASE("ZipReader, ZipWriter: where names are only names, any but none will do") {
  const TemporaryFolder folder = folder_for("zip");
  auto writer = ZipWriter::create(folder.path() / "a", EntryNames::kAny);
  REQUIRE(writer);
  for (const char* name : {"/etc/passwd", "../a", "a/../b", ".", "..", "a//b"}) {
    REQUIRE(writer->add(name, name));
  }
  CHECK_FALSE(writer->add("", ""));
  REQUIRE(writer->finish());
  CHECK_FALSE(ZipReader::open(folder.path() / "a"));
  const auto reader = ZipReader::open(folder.path() / "a", EntryNames::kAny);
  REQUIRE(reader);
  CHECK(reader->entries().size() == 6);
  CHECK(*reader->read("a/../b", 100) == "a/../b");
  CHECK(*reader->read("/etc/passwd", 100) == "/etc/passwd");
}

TEST_CASE("ZipReader: links, devices and duplicates are refused") {
  check_refused(Archive(raw_zip({{.name = "a", .stored = "/etc/passwd", .mode = 0120777}})),
                "is a link");
  check_refused(Archive(raw_zip({{.name = "a", .stored = "", .mode = 0020666}})), "or a device");
  check_refused(Archive(raw_zip({{.name = "a", .stored = "1"}, {.name = "a", .stored = "2"}})),
                "stands twice");
}

TEST_CASE("ZipReader: what is no whole archive is refused by name") {
  const std::string whole = raw_zip({{.name = "a", .stored = std::string(1000, 'x')}});
  check_refused(Archive(std::string_view("")), "it is empty");
  check_refused(Archive(std::string_view("this is no archive at all")), "no whole zip archive");
  check_refused(Archive(std::string(70'000, '\xA5')), "no whole zip archive");
  for (const size_t size : {size_t{3}, size_t{500}, whole.size() - 23, whole.size() - 1}) {
    CAPTURE(size);
    check_refused(Archive(whole.substr(0, size)), "no whole zip archive");
  }
}

TEST_CASE("ZipReader: a missing file and a folder are errors that name the path") {
  const auto missing = ZipReader::open("/no/such.zip");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kIo);
  CHECK(missing.error().message == "reading '/no/such.zip': No such file or directory");
  const auto folder = ZipReader::open("/");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message == "/: is a folder, not a file");
}

TEST_CASE("ZipReader: a damaged entry fails, and extract leaves no half file") {
  const Archive archive(raw_zip({{.name = "a", .stored = "hello", .crc_off = 1}}));
  const auto reader = ZipReader::open(archive.path());
  REQUIRE(reader);
  const auto content = reader->read("a", 100);
  REQUIRE_FALSE(content);
  CHECK(content.error().message.find("entry 'a' is damaged") != std::string::npos);
  CHECK_FALSE(reader->extract("a", archive.folder() / "out", 100));
  CHECK_FALSE(fs::exists(archive.folder() / "out"));
}

TEST_CASE("ZipReader: the limit counts the bytes that come, not those that are claimed") {
  // As above, ten letters, but the archive claims two.
  const Archive archive(raw_zip({{.name = "a",
                                  .stored = std::string("\x4b\x4c\x84\x01\x00", 5),
                                  .method = 8,
                                  .size = 2,
                                  .crc = 0x4c11cdf0}}));
  const auto reader = ZipReader::open(archive.path());
  REQUIRE(reader);
  CHECK_FALSE(reader->read("a", 5));
  CHECK_FALSE(reader->extract("a", archive.folder() / "out", 5));
  CHECK_FALSE(fs::exists(archive.folder() / "out"));
  const Archive honest(raw_zip({{.name = "a", .stored = "hello"}}));
  const auto plain = ZipReader::open(honest.path());
  REQUIRE(plain);
  CHECK(plain->read("a", 5));
  const auto over = plain->read("a", 4);
  REQUIRE_FALSE(over);
  CHECK(over.error().message.find("is larger than 4 B") != std::string::npos);
}

TEST_CASE("ZipReader: a name that is not there is named") {
  const Archive archive(raw_zip({{.name = "a", .stored = "hello"}}));
  const auto reader = ZipReader::open(archive.path());
  REQUIRE(reader);
  const auto content = reader->read("b", 10);
  REQUIRE_FALSE(content);
  CHECK(content.error().message == "'" + archive.path().string() + "': entry 'b' does not exist");
}

TEST_CASE("ZipWriter: what is written reads back, and equal entries give equal bytes") {
  const TemporaryFolder folder = folder_for("模型 it's");
  const std::string large(3'000'000, 'y');
  REQUIRE(write_file_atomically(folder.path() / "large", large));
  for (const char* name : {"模 1.hasten", "2.hasten"}) {
    auto writer = ZipWriter::create(folder.path() / name);
    REQUIRE(writer);
    REQUIRE(writer->add("manifest.json", "{}"));
    REQUIRE(writer->add_file("payload/模型", folder.path() / "large"));
    REQUIRE(writer->add("empty", ""));
    CHECK_FALSE(fs::exists(folder.path() / name));
    REQUIRE(writer->finish());
  }
  CHECK(count_files(folder.path()) == 3);
  const std::string bytes = bytes_of(folder.path() / "模 1.hasten");
  CHECK(bytes == bytes_of(folder.path() / "2.hasten"));
  // Time and date of the first entry: 1980-01-01 00:00, whenever this runs.
  CHECK(bytes.substr(10, 4) == std::string("\0\0\x21\0", 4));
  CHECK(bytes.find(large) != std::string::npos);  // Stored, not packed.
  const auto reader = ZipReader::open(folder.path() / "模 1.hasten");
  REQUIRE(reader);
  CHECK(reader->entries().size() == 3);
  CHECK(*reader->read("manifest.json", 10) == "{}");
  CHECK(*reader->read("payload/模型", 3'000'000) == large);
  CHECK(reader->read("empty", 0)->empty());
  REQUIRE(reader->extract("payload/模型", folder.path() / "out", 3'000'000));
  CHECK(bytes_of(folder.path() / "out") == large);
}

TEST_CASE("ZipWriter: an archive without entries is one") {
  const TemporaryFolder folder = folder_for("zip");
  auto writer = ZipWriter::create(folder.path() / "a");
  REQUIRE(writer);
  REQUIRE(writer->finish());
  const auto reader = ZipReader::open(folder.path() / "a");
  REQUIRE(reader);
  CHECK(reader->entries().empty());
}

TEST_CASE("ZipWriter: without finish() nothing is left, and the old file stays") {
  const TemporaryFolder folder = folder_for("zip");
  REQUIRE(write_file_atomically(folder.path() / "a", "old"));
  {
    auto writer = ZipWriter::create(folder.path() / "a");
    REQUIRE(writer);
    REQUIRE(writer->add("x", "y"));
  }
  CHECK(bytes_of(folder.path() / "a") == "old");
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("ZipWriter: a disk that fills up leaves the old file and no other") {
  const TemporaryFolder folder = folder_for("zip");
  REQUIRE(write_file_atomically(folder.path() / "a", "old"));
  {
    const SmallDisk disk(10'000);
    auto writer = ZipWriter::create(folder.path() / "a");
    REQUIRE(writer);
    REQUIRE(writer->add("x", std::string(100'000, 'y')));
    const Status finished = writer->finish();
    REQUIRE_FALSE(finished);
    CHECK(finished.error().code == Code::kIo);
    CHECK(finished.error().message ==
          "writing '" + (folder.path() / "a").string() + "': File too large");
  }
  CHECK(bytes_of(folder.path() / "a") == "old");
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("ZipWriter: bad names, duplicates, missing files and bad places are refused") {
  const TemporaryFolder folder = folder_for("zip");
  auto writer = ZipWriter::create(folder.path() / "a");
  REQUIRE(writer);
  CHECK_FALSE(writer->add("../x", ""));
  CHECK_FALSE(writer->add("/x", ""));
  CHECK_FALSE(writer->add("", ""));
  REQUIRE(writer->add("x", ""));
  const Status twice = writer->add("x", "");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message.find("entry 'x' stands twice") != std::string::npos);
  const Status missing = writer->add_file("y", "/no/such");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message == "reading '/no/such': No such file or directory");
  CHECK_FALSE(writer->add_file("y", "/"));
  CHECK_FALSE(ZipWriter::create("/no/such/a.zip"));
  CHECK(ZipWriter::create("/dev/null").error().message ==
        "/dev/null: is no regular file, but a device");
  CHECK_FALSE(ZipWriter::create(folder.path()));
}

}  // namespace
}  // namespace hasten
