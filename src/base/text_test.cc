// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <doctest/doctest.h>

namespace hasten {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST_CASE("split: keeps empty parts, and an empty text has none") {
  CHECK(split("a,b,,c,", ',') == std::vector<std::string>{"a", "b", "", "c", ""});
  CHECK(split("a", ',') == std::vector<std::string>{"a"});
  CHECK(split("", ',').empty());
}

TEST_CASE("join: puts the separator between the parts only") {
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join({}, ", ").empty());
}

TEST_CASE("trim: takes white space off both ends") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \n ").empty());
}

TEST_CASE("shell_quoted: only words that a shell would touch are quoted") {
  CHECK(shell_quoted("/a/b-1.2_c,d=e:f@g%h+i") == "/a/b-1.2_c,d=e:f@g%h+i");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("$HOME") == "'$HOME'");
  CHECK(shell_quoted("模型") == "'模型'");
}

TEST_CASE("valid_utf8: good text stays, each bad byte becomes U+FFFD") {
  CHECK(valid_utf8("a模型\xF0\x9F\x98\x80") == "a模型\xF0\x9F\x98\x80");
  CHECK(valid_utf8("a\xFFz") == "a\xEF\xBF\xBDz");
  // A sequence cut at the end, an overlong '/', a surrogate, and beyond U+10FFFF.
  CHECK(valid_utf8("\xE6\xA8") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(valid_utf8("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(valid_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(valid_utf8("\xF4\x90\x80\x80").size() == 12);
}

TEST_CASE("parse_duration: a number and a unit") {
  CHECK(parse_duration("50ms") == nanoseconds(milliseconds(50)));
  CHECK(parse_duration("2s") == nanoseconds(seconds(2)));
  CHECK(parse_duration("10m") == nanoseconds(minutes(10)));
  CHECK(parse_duration("1h") == nanoseconds(hours(1)));
  CHECK(parse_duration("1.5s") == nanoseconds(milliseconds(1500)));
  CHECK(parse_duration("250us") == nanoseconds(250'000));
  CHECK(parse_duration("7ns") == nanoseconds(7));
  CHECK(parse_duration("0s") == nanoseconds(0));
}

TEST_CASE("parse_duration: anything else is none") {
  for (const char* text : {"", "5", "s", "-1s", "+1s", "1e3s", "infs", "nans", "1.2.3s",
                           "10 parsecs", "1s2", "99999999999h", "0x10s", "."}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("printable: what a terminal would obey is written out, all else stays") {
  CHECK(printable("plain text, 模型 µs\n\tnext") == "plain text, 模型 µs\n\tnext");
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("\r\b\x7f") == "\\x0d\\x08\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b" "31m") == "\\xc2\\x9b31m");  // CSI in eight bits, as UTF-8
  CHECK(printable("\x9b" "31m") == "\\x9b31m");              // and as it is.
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
  CHECK(printable_name("one\ntwo\tthree\x1b") == "one\\ntwo\\tthree\\x1b");
  CHECK(printable("").empty());
}

TEST_CASE("parse_size: decimal and binary units, bare bytes") {
  CHECK(parse_size("1000") == 1000u);
  CHECK(parse_size("512MB") == 512'000'000u);
  CHECK(parse_size("2GB") == 2'000'000'000u);
  CHECK(parse_size("1.5GiB") == 1'610'612'736u);
  CHECK(parse_size("3 kb") == 3000u);
  CHECK(parse_size("1KiB") == 1024u);
  CHECK(parse_size("0") == 0u);
}

TEST_CASE("parse_size: anything else is none") {
  for (const char* text : {"", "MB", "-1MB", "1 MB 2", "99999999TB", "1e9", "many"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("human_size: two digits below ten, whole numbers above") {
  CHECK(human_size(0) == "0 B");
  CHECK(human_size(999) == "999 B");
  CHECK(human_size(1000) == "1.0 kB");
  CHECK(human_size(9'949) == "9.9 kB");
  CHECK(human_size(88'000'000) == "88 MB");
  CHECK(human_size(999'499'999) == "999 MB");
  CHECK(human_size(999'500'000) == "1.0 GB");
  CHECK(human_size(18'446'744'073'709'551'615u) == "18 EB");
}

TEST_CASE("human_duration: three digits, then minutes and hours") {
  CHECK(human_duration(nanoseconds(0)) == "0 ns");
  CHECK(human_duration(nanoseconds(999)) == "999 ns");
  CHECK(human_duration(nanoseconds(1000)) == "1.00 us");
  CHECK(human_duration(nanoseconds(3'412'000)) == "3.41 ms");
  CHECK(human_duration(nanoseconds(9'996'000)) == "10.0 ms");
  CHECK(human_duration(nanoseconds(99'960'000)) == "100 ms");
  CHECK(human_duration(nanoseconds(999'600'000)) == "1.00 s");
  CHECK(human_duration(nanoseconds(12'340'000'000)) == "12.3 s");
  CHECK(human_duration(nanoseconds(59'960'000'000)) == "1 min");
  CHECK(human_duration(seconds(125)) == "2 min 5 s");
  CHECK(human_duration(minutes(65)) == "1 h 5 min");
  CHECK(human_duration(-milliseconds(2)) == "-2.00 ms");
}

TEST_CASE("closest: finds a slip of the pen and nothing else") {
  const std::vector<std::string> known = {"onnxruntime", "openvino", "torchscript", "inductor"};
  CHECK(closest("onxruntime", known) == "onnxruntime");
  CHECK(closest("OpenVino", known) == "openvino");
  CHECK(closest("torchscritp", known) == "torchscript");
  CHECK_FALSE(closest("tensorrt", known));
  CHECK_FALSE(closest("", known));
  CHECK_FALSE(closest("x", {"y"}));
  CHECK_FALSE(closest("x", {}));
}

}  // namespace
}  // namespace hasten
