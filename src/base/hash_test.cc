// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <doctest/doctest.h>

#include "base/files.h"

namespace hasten {
namespace {

// FIPS 180-4 examples.
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kMillionA =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST_CASE("sha256: the published examples") {
  CHECK(sha256("") == kEmpty);
  CHECK(sha256("abc") == kAbc);
  CHECK(sha256(std::string(1'000'000, 'a')) == kMillionA);
}

TEST_CASE("sha256_of_file: the same as of its bytes, also beyond one buffer") {
  const auto folder = TemporaryFolder::create("hash");
  REQUIRE(folder);
  const auto file = folder->path() / "a";
  REQUIRE(write_file_atomically(file, std::string(1'000'000, 'a')));
  const auto million = sha256_of_file(file);
  REQUIRE(million);
  CHECK(*million == kMillionA);
  const std::string long_text(3'000'001, 'x');
  REQUIRE(write_file_atomically(file, long_text));
  const auto longer = sha256_of_file(file);
  REQUIRE(longer);
  CHECK(*longer == sha256(long_text));
}

TEST_CASE("sha256_of_file: a missing file is named") {
  const auto hash = sha256_of_file("/no/such/file");
  REQUIRE_FALSE(hash);
  CHECK(hash.error().code == Code::kIo);
  CHECK(hash.error().message == "reading '/no/such/file': No such file or directory");
}

}  // namespace
}  // namespace hasten
