// SPDX-License-Identifier: Apache-2.0
#include "tensor/npz.h"

#include <complex>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/zip.h"
#include "tensor/difference.h"
#include "tensor/ops.h"
#include "tensor/test_support.h"

namespace hasten {
namespace {

using namespace std::string_literals;
using testing::shape_of;
using Doubles = std::vector<double>;

// A version 1 file as NumPy 2.4 writes it: f = io.BytesIO();
// numpy.lib.format.write_array(f, array, version=(1, 0)); f.getvalue(). Each of these
// headers fits in 118 bytes, to which NumPy pads it.
std::string npy_v1(std::string header, const std::string& data) {
  header.resize(117, ' ');
  return "\x93NUMPY\x01\x00v\x00"s + header + "\n" + data;
}

// numpy.savez_compressed(f, b=numpy.array([[1, 2], [3, 4]], 'i1'), a=numpy.float32(1.5))
constexpr std::string_view kArchive(
    "\x50\x4b\x03\x04\x2d\x00\x00\x00\x08\x00\x00\x00\x21\x00\x91\xe0\xe0\x4c\xff\xff"
    "\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00\x62\x2e\x6e\x70\x79\x01\x00\x10\x00\x84"
    "\x00\x00\x00\x00\x00\x00\x00\x4a\x00\x00\x00\x00\x00\x00\x00\x9b\xec\x17\xea\x1b"
    "\x10\xc9\xc8\x50\xc6\x50\xad\x9e\x92\x5a\x9c\x5c\xa4\x6e\xa5\xa0\x5e\x93\x69\xa8"
    "\xae\xa3\xa0\x9e\x96\x5f\x54\x52\x94\x98\x17\x9f\x5f\x94\x92\x0a\x12\x77\x4b\xcc"
    "\x29\x4e\x05\x8a\x17\x67\x24\x16\xa4\x02\xf9\x1a\x46\x3a\x0a\x46\x9a\x3a\x0a\xb5"
    "\x0a\x64\x03\x2e\x46\x26\x66\x16\x00\x50\x4b\x03\x04\x2d\x00\x00\x00\x08\x00\x00"
    "\x00\x21\x00\x25\x13\xe6\x5d\xff\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00\x61"
    "\x2e\x6e\x70\x79\x01\x00\x10\x00\x84\x00\x00\x00\x00\x00\x00\x00\x46\x00\x00\x00"
    "\x00\x00\x00\x00\x9b\xec\x17\xea\x1b\x10\xc9\xc8\x50\xc6\x50\xad\x9e\x92\x5a\x9c"
    "\x5c\xa4\x6e\xa5\xa0\x6e\x93\x66\xa2\xae\xa3\xa0\x9e\x96\x5f\x54\x52\x94\x98\x17"
    "\x9f\x5f\x94\x92\x0a\x12\x77\x4b\xcc\x29\x4e\x05\x8a\x17\x67\x24\x16\xa4\x02\xf9"
    "\x1a\x9a\x3a\x0a\xb5\x0a\x14\x01\x2e\x06\x86\x03\xf6\x00\x50\x4b\x01\x02\x2d\x03"
    "\x2d\x00\x00\x00\x08\x00\x00\x00\x21\x00\x91\xe0\xe0\x4c\x4a\x00\x00\x00\x84\x00"
    "\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00"
    "\x62\x2e\x6e\x70\x79\x50\x4b\x01\x02\x2d\x03\x2d\x00\x00\x00\x08\x00\x00\x00\x21"
    "\x00\x25\x13\xe6\x5d\x46\x00\x00\x00\x84\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x80\x01\x81\x00\x00\x00\x61\x2e\x6e\x70\x79\x50\x4b\x05\x06"
    "\x00\x00\x00\x00\x02\x00\x02\x00\x66\x00\x00\x00\xfe\x00\x00\x00\x00\x00",
    378);

class Folder {
 public:
  Folder() : folder_(*TemporaryFolder::create("npz-test")) {}
  std::filesystem::path operator/(const char* name) const { return folder_.path() / name; }
  std::filesystem::path with(const char* name, std::string_view content) const {
    const std::filesystem::path path = *this / name;
    REQUIRE(write_file_atomically(path, content));
    return path;
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("from_npy: what NumPy writes") {
  // numpy.array([[1, 2, 3], [4, 5, 6]], '<i2')
  const Tensor t = *from_npy(npy_v1("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }",
                                    "\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00"s));
  CHECK(t.dtype() == DType::kInt16);
  CHECK(shape_of(t) == Shape{2, 3});
  CHECK(to_doubles(t) == Doubles{1, 2, 3, 4, 5, 6});
}

TEST_CASE("from_npy: scalars and arrays without elements") {
  const Tensor scalar = *from_npy(
      npy_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "\x00\x00\xc0\x3f"s));
  CHECK(shape_of(scalar) == Shape{});
  CHECK(to_doubles(scalar) == Doubles{1.5});
  const Tensor none =
      *from_npy(npy_v1("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 0, 3), }", ""));
  CHECK(none.dtype() == DType::kBool);
  CHECK(shape_of(none) == Shape{2, 0, 3});
}

TEST_CASE("from_npy: Fortran order and big-endian numbers are converted") {
  // numpy.asfortranarray(numpy.array([[1, 2, 3], [4, 5, 6]], '>f4'))
  const Tensor t = *from_npy(npy_v1("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }",
                                    "?\x80\x00\x00@\x80\x00\x00@\x00\x00\x00@\xa0\x00\x00@@\x00\x00"
                                    "@\xc0\x00\x00"s));
  CHECK(t.dtype() == DType::kFloat32);
  CHECK(t.is_compact());
  CHECK(to_doubles(t) == Doubles{1, 2, 3, 4, 5, 6});
  // numpy.array([1 + 2j], '>c8')
  const Tensor c = *from_npy(npy_v1("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }",
                                    "?\x80\x00\x00@\x00\x00\x00"s));
  CHECK(c.values<std::complex<float>>()[0] == std::complex<float>(1, 2));
}

TEST_CASE("from_npy: format versions 2 and 3 have a longer header length") {
  std::string bytes = npy_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                             "\x00\x00\x80?\x00\x00\x00@"s);
  bytes.replace(8, 2, "v\x00\x00\x00"s);
  for (const char version : {2, 3}) {
    bytes[6] = version;
    CHECK(to_doubles(*from_npy(bytes)) == Doubles{1, 2});
  }
  bytes[6] = 4;
  CHECK(from_npy(bytes).error().code == Code::kUnsupported);
}

TEST_CASE("from_npy: bfloat16 as ml_dtypes writes it") {
  // numpy.array([1, 2], ml_dtypes.bfloat16); other versions of it write the other names.
  for (const std::string descr : {"<V2", "|V2", "bfloat16"}) {
    const Tensor t = *from_npy(npy_v1(
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }", "\x80?\x00@"s));
    CHECK(t.dtype() == DType::kBFloat16);
    CHECK(to_doubles(t) == Doubles{1, 2});
  }
}

TEST_CASE("from_npy: a bool is 0 or 1 whatever byte the file has") {
  const Tensor t = *from_npy(
      npy_v1("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x00\x01\x07"s));
  CHECK(static_cast<const uint8_t*>(t.data())[2] == 1);
}

TEST_CASE("from_npy: headers of other writers") {
  // Python 2 wrote long integers with an L; some writers use double quotes and no last comma.
  CHECK(shape_of(*from_npy(npy_v1("{'descr': '|u1', 'fortran_order': False, 'shape': (1L, 2L)}",
                                  "ab"))) == Shape{1, 2});
  CHECK(shape_of(*from_npy(npy_v1("{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}",
                                  "ab"))) == Shape{2});
}

TEST_CASE("from_npy: what is no array of numbers is refused by its kind") {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"'|O'", "Python objects"},  {"'<U2'", "strings"},    {"'|S3'", "strings"},
      {"'<M8[s]'", "dates"},       {"'|V5'", "structured"}, {"[('a', '<f4')]", "structured"},
      {"'<f16'", "not supported"}, {"''", "not supported"}};
  for (const auto& [descr, word] : kinds) {
    CAPTURE(descr);
    const Result<Tensor> t = from_npy(npy_v1(
        "{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", std::string(64, 0)));
    REQUIRE_FALSE(t);
    CHECK(t.error().code == Code::kUnsupported);
    CHECK(t.error().message.find(word) != std::string::npos);
  }
}

TEST_CASE("from_npy: every truncation is an error") {
  const std::string whole =
      npy_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, 0));
  REQUIRE(from_npy(whole));
  for (size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK_FALSE(from_npy(std::string_view(whole).substr(0, n)));
  }
}

TEST_CASE("from_npy: damaged headers are errors, and a claimed size allocates nothing") {
  const std::string data(64, 0);
  for (const std::string header :
       {"", "[]", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (17,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"}) {
    CAPTURE(header);
    CHECK_FALSE(from_npy(npy_v1(header, data)));
  }
}

TEST_CASE("to_npy: byte for byte what NumPy writes") {
  const std::vector<int16_t> values{1, 2, 3, 4, 5, 6};
  CHECK(to_npy(Tensor::from(std::span<const int16_t>(values), Shape{2, 3})) ==
        npy_v1("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }",
               "\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00"s));
  const float scalar[] = {1.5f};
  CHECK(to_npy(Tensor::from(std::span<const float>(scalar), Shape{})) ==
        npy_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "\x00\x00\xc0\x3f"s));
  CHECK(to_npy(Tensor::empty(DType::kBool, Shape{0})) ==
        npy_v1("{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }", ""));
}

TEST_CASE("to_npy, from_npy: every dtype survives, strided tensors by their logical order") {
  for (int i = 0; i <= static_cast<int>(DType::kComplex128); ++i) {
    const auto dtype = static_cast<DType>(i);
    CAPTURE(to_string(dtype));
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3, 2}}) {
      const Tensor t = random_tensor(dtype, shape, 5);
      CHECK(identical(*from_npy(to_npy(t)), t));
    }
  }
  std::vector<float> data{0, 1, 2, 3, 4, 5};
  const Tensor turned = Tensor::view_of(DType::kFloat32, data.data(), {3, 2}, {1, 3}, nullptr);
  CHECK(to_doubles(*from_npy(to_npy(turned))) == Doubles{0, 3, 1, 4, 2, 5});
}

TEST_CASE("read_npz: an archive of NumPy, arrays in the order of the file") {
  const Folder folder;
  const NamedTensors tensors = *read_npz(folder.with("x.npz", kArchive));
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].first == "b");
  CHECK(to_doubles(tensors[0].second) == Doubles{1, 2, 3, 4});
  CHECK(tensors[1].first == "a");
  CHECK(to_doubles(tensors[1].second) == Doubles{1.5});
}

TEST_CASE("read_npz: a plain .npy array is called arr_0") {
  const Folder folder;
  const Tensor t = random_tensor(DType::kFloat32, Shape{4}, 1);
  const NamedTensors tensors = *read_npz(folder.with("x.npz", to_npy(t)));
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].first == "arr_0");
  CHECK(identical(tensors[0].second, t));
}

TEST_CASE("write_npz: what is written is read back under its name and in its order") {
  const Folder folder;
  NamedTensors tensors;
  tensors.emplace_back("z", random_tensor(DType::kFloat16, Shape{2, 3}, 1));
  tensors.emplace_back("a/b c", random_tensor(DType::kInt64, Shape{}, 2));
  // As onnx.utils.extract_model names what it cuts out of a graph; and worse.
  for (const char* name : {"/encoder/Relu_output_0", "a/../b", ".", "..", "a//b"}) {
    tensors.emplace_back(name, random_tensor(DType::kInt8, Shape{2}, tensors.size()));
  }
  const std::filesystem::path path = folder / "模型 $x.npz";
  REQUIRE(write_npz(path, tensors));
  const NamedTensors read = *read_npz(path);
  REQUIRE(read.size() == 7);
  for (size_t i = 0; i < 7; ++i) {
    CHECK(read[i].first == tensors[i].first);
    CHECK(identical(read[i].second, tensors[i].second));
  }
  tensors.emplace_back("z", Tensor::zeros(DType::kInt8, Shape{1}));
  CHECK(write_npz(folder / "twice.npz", tensors).error().code == Code::kInvalidArgument);
  CHECK_FALSE(std::filesystem::exists(folder / "twice.npz"));
}

TEST_CASE("read_npz: errors name the file and the array") {
  const Folder folder;
  const auto message = [](const std::filesystem::path& path) {
    const Result<NamedTensors> read = read_npz(path);
    REQUIRE_FALSE(read);
    return read.error().message;
  };
  CHECK(message(folder / "absent.npz").find("absent.npz") != std::string::npos);
  CHECK(message(folder.with("empty.npz", "")).find("empty.npz") != std::string::npos);
  CHECK(message(folder.with("text.npz", "hello")).find("text.npz is neither") != std::string::npos);
  CHECK(message(folder.with("half.npz", kArchive.substr(0, 200))).find("half.npz") !=
        std::string::npos);

  ZipWriter objects = *ZipWriter::create(folder / "objects.npz");
  REQUIRE(objects.add(
      "x.npy", npy_v1("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "pickle")));
  REQUIRE(objects.finish());
  const std::string text = message(folder / "objects.npz");
  CHECK(text.find("objects.npz: array 'x'") != std::string::npos);
  CHECK(text.find("pickle") != std::string::npos);

  ZipWriter foreign = *ZipWriter::create(folder / "foreign.npz");
  REQUIRE(foreign.add("readme.txt", "hello"));
  REQUIRE(foreign.finish());
  CHECK(message(folder / "foreign.npz").find("'readme.txt' is no .npy") != std::string::npos);
}

}  // namespace
}  // namespace hasten
