// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/hash.h"
#include "base/test_support.h"
#include "base/text.h"
#include "base/zip.h"
#include "model/onnx_test_file.h"

using namespace hasten;
using namespace hasten::testing;
namespace fs = std::filesystem;

namespace {

struct Folder {
  TemporaryFolder folder = folder_for("model");
  fs::path put(const std::string& name, std::string_view content) const {
    const fs::path path = folder.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  fs::path put_zip(const std::string& name, const std::vector<std::string>& entries) const {
    auto zip = ZipWriter::create(folder.path() / name);
    REQUIRE(zip);
    for (const std::string& entry : entries) REQUIRE(zip->add(entry, "x"));
    REQUIRE(zip->finish());
    return folder.path() / name;
  }
};

std::string format_of(const fs::path& path) {
  const auto model = open_model(path);
  REQUIRE_MESSAGE(model, model.error().message);
  return model->format;
}

// The message, which must begin with the path, without it.
std::string refusal(const fs::path& path) {
  const auto model = open_model(path);
  REQUIRE_FALSE(model);
  const std::string start = path.string() + ": ";
  REQUIRE(model.error().message.starts_with(start));
  return model.error().message.substr(start.size());
}

std::string hint(const fs::path& path) {
  const auto model = open_model(path);
  REQUIRE_FALSE(model);
  return model.error().hint;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

const std::vector<std::string> kTorchScript = {"m/data.pkl", "m/code/__torch__.py",
                                               "m/constants.pkl", "m/data/0", "m/version"};
const std::vector<std::string> kExported = {"m/data/weights/weight_0", "m/models/model.json",
                                            "m/archive_format", "m/archive_version"};

}  // namespace

TEST_CASE("open_model: a format is known by content, whatever the name") {
  const Folder folder;
  CHECK(format_of(folder.put("a.txt", onnx_file({}))) == "onnx");
  CHECK(format_of(folder.put_zip("b.onnx", kTorchScript)) == "torchscript");
  CHECK(format_of(folder.put_zip("c.pt", kExported)) == "pt2");
  CHECK(format_of(folder.put_zip("d.pt", {"serialized_exported_program.json", "version"})) ==
        "pt2");
  CHECK(format_of(folder.put_zip("e.zip", {"manifest.json", "payload/0/model"})) == "hasten");
  CHECK(format_of(folder.put("f", "hasten-model fake\nfunction scale\n")) == "fake");
  CHECK(format_of(folder.put("模型 'a' $x.onnx", onnx_file({}))) == "onnx");
}

TEST_CASE("open_model: an ONNX file whose fields stand in another order is one all the same") {
  const Folder folder;
  const std::string graph = bytes_field(7, onnx_graph({}));
  const std::string opset = bytes_field(8, varint_field(2, 17));
  CHECK(format_of(folder.put("m", graph + opset + varint_field(1, 8))) == "onnx");
}

TEST_CASE("open_model: the path is absolute, the size and fingerprint are the content's") {
  const Folder folder;
  const std::string bytes = onnx_file({});
  const auto model = open_model(folder.put("m.onnx", bytes));
  REQUIRE(model);
  CHECK(model->path.is_absolute());
  CHECK(model->size_bytes == bytes.size());
  CHECK(model->fingerprint == sha256(bytes));
}

TEST_CASE("open_model: what is no file at all") {
  const Folder folder;
  CHECK(refusal(folder.folder.path() / "none.onnx") == "does not exist");
  CHECK(contains(refusal(folder.put("e.onnx", "")), "is empty"));
  CHECK(refusal(folder.folder.path()) == "is a folder, not a model file");
  CHECK(hint(folder.folder.path()) == "it holds e.onnx");
  folder.put("unpacked/manifest.json", "{}");
  CHECK(contains(hint(folder.folder.path() / "unpacked"), "unpacked artifact"));
  folder.put("other/readme.txt", "x");
  CHECK(contains(hint(folder.folder.path() / "other"), "a .hasten that `hasten tune` wrote"));
  folder.put("tf/saved_model.pb", "x");
  CHECK(contains(refusal(folder.folder.path() / "tf"), "TensorFlow SavedModel"));
  const fs::path pipe = folder.folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal(pipe) == "is no regular file, but a pipe");
  CHECK_FALSE(open_model(""));
}

TEST_CASE("open_model: an ONNX model that gives nothing is refused before anything runs") {
  const Folder folder;
  OnnxParts parts;
  parts.outputs = {};
  CHECK(contains(refusal(folder.put("none.onnx", onnx_file(parts))), "without outputs"));
}

TEST_CASE("open_model: what leads each process to another file is named by the file itself") {
  const Folder folder;
  const fs::path file = folder.put("m.onnx", onnx_file({}));
  const FileDescriptor opened = *open_file(file, O_RDONLY);
  const auto model = open_model(format("/dev/fd/{}", opened.get()));
  REQUIRE(model);
  CHECK(model->path == fs::canonical(file));
  fs::remove(file);
  CHECK(contains(refusal(format("/proc/self/fd/{}", opened.get())), "no name any more"));
}

TEST_CASE("open_model: says what else a file is, and what to do") {
  const Folder folder;
  CHECK(contains(refusal(folder.put_zip("sd.pt", {"sd/data.pkl", "sd/data/0", "sd/version"})),
                 "is a checkpoint written by torch.save, not a TorchScript archive"));
  CHECK(contains(hint(folder.folder.path() / "sd.pt"), "torch.jit.save"));
  CHECK(contains(refusal(folder.put("old.pt", "\x80\x02\x8a\x0al\xfc")), "is a pickle"));
  CHECK(contains(refusal(folder.put_zip("a.pt2", {"a/data/aotinductor/model/x.so",
                                                  "a/archive_format", "a/archive_version"})),
                 "already compiled"));
  CHECK(contains(refusal(folder.put_zip("x.npz", {"a.npy", "b.npy"})), "NumPy arrays"));
  CHECK(contains(refusal(folder.put_zip("x.keras", {"config.json", "model.weights.h5"})), "Keras"));
  CHECK(contains(refusal(folder.put_zip("x.zip", {"readme.txt"})), "a zip archive, but no model"));
  CHECK(contains(refusal(folder.put_zip("x.hasten", {"readme.txt"})), "it has no manifest.json"));
  CHECK(contains(refusal(folder.put("w", std::string("\x40\0\0\0\0\0\0\0{\"a\"", 12))),
                 "safetensors"));
  CHECK(contains(refusal(folder.put("g", "GGUF\3")), "GGUF"));
  CHECK(contains(refusal(folder.put("t", std::string("\x1c\0\0\0TFL3", 8))), "TensorFlow Lite"));
  CHECK(contains(refusal(folder.put("h", "\x89HDF\r\n")), "HDF5"));
  CHECK(contains(refusal(folder.put("l", "version https://git-lfs.github.com/spec/v1\n")),
                 "Git LFS pointer"));
  CHECK(contains(refusal(folder.put("p", "<!DOCTYPE html><html>")), "web page"));
  CHECK(contains(refusal(folder.put("z", "\x1f\x8b\x08")), "gzip"));
  CHECK(contains(refusal(folder.put("n", "\x93NUMPY\x01")), "NumPy array"));
  CHECK(contains(refusal(folder.put("r.onnx", "\xd1\xff\x17Lorem")), "d1 ff 17 4c 6f 72 65 6d"));
  CHECK(contains(refusal(folder.put("plain.onnx", "hello, world")), "no model that hasten knows"));
}

TEST_CASE("open_model: a zip cut short at every tenth is refused") {
  const Folder folder;
  std::ifstream in(folder.put_zip("m.pt", kTorchScript), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t tenth = 1; tenth < 10; ++tenth) {
    const fs::path cut = folder.put("cut.pt", whole.substr(0, whole.size() * tenth / 10));
    CHECK(contains(refusal(cut), "is truncated or not a zip"));
  }
}

TEST_CASE("open_model: an ONNX file cut short at every byte is refused") {
  const Folder folder;
  OnnxParts parts;
  parts.initializers = {tensor_bytes("w", std::string(40, 'w'))};
  const std::string whole = onnx_file(parts);
  for (size_t size = 1; size < whole.size(); ++size) {
    CHECK_FALSE(open_model(folder.put("m.onnx", whole.substr(0, size))));
  }
  const fs::path half = folder.put("m.onnx", whole.substr(0, whole.size() / 2));
  CHECK(contains(refusal(half), "is an ONNX model that is truncated or damaged (at byte"));
  CHECK(contains(refusal(folder.put("m.onnx", whole + '\0')), "truncated or damaged"));
}

TEST_CASE("open_model: external data is part of size and fingerprint") {
  const Folder folder;
  OnnxParts parts;
  parts.initializers = {tensor_external("w", {{"location", "data/w.bin"}, {"length", "4"}})};
  const fs::path path = folder.put("m.onnx", onnx_file(parts));
  folder.put("data/w.bin", "abcd");
  const auto one = open_model(path);
  REQUIRE(one);
  CHECK(one->size_bytes == onnx_file(parts).size() + 4);
  folder.put("data/w.bin", "abcx");
  const auto other = open_model(path);
  REQUIRE(other);
  CHECK(one->fingerprint != other->fingerprint);
}

TEST_CASE("open_model: external data must be there, whole, and inside the model's folder") {
  const Folder folder;
  folder.put("secret", "0123456789");
  folder.put("in/short.bin", "0123");
  fs::create_symlink("../secret", folder.folder.path() / "in" / "link");
  fs::create_symlink("..", folder.folder.path() / "in" / "up");
  fs::create_directories(folder.folder.path() / "in" / "sub");
  using Entries = std::vector<std::pair<std::string, std::string>>;
  const auto told = [&](const Entries& entries) {
    OnnxParts parts;
    parts.initializers = {tensor_external("w", entries)};
    return refusal(folder.put("in/m.onnx", onnx_file(parts)));
  };
  CHECK(contains(told({{"location", "none.bin"}}),
                 "external data 'none.bin' of tensor 'w' is missing"));
  CHECK(contains(told({{"location", "../secret"}}), "leaves the model's folder"));
  CHECK(contains(told({{"location", "sub/../../secret"}}), "leaves the model's folder"));
  CHECK(contains(told({{"location", (folder.folder.path() / "secret").string()}}),
                 "has an absolute path"));
  CHECK(contains(told({{"location", "link"}}), "is a link that leaves the model's folder"));
  CHECK(contains(told({{"location", "up/secret"}}), "is a link that leaves the model's folder"));
  CHECK(contains(told({{"location", "sub"}}), "is no regular file"));
  CHECK(contains(told({{"location", "short.bin"}, {"length", "5"}}), "is truncated"));
  CHECK(contains(told({{"location", "short.bin"}, {"offset", "5"}}), "is truncated"));
  CHECK(contains(
      told({{"location", "short.bin"}, {"offset", "2"}, {"length", "18446744073709551615"}}),
      "is truncated"));
  CHECK(contains(told({{"location", "short.bin"}, {"length", "-1"}}), "the length of tensor 'w'"));
  CHECK(contains(told({}), "is not named"));
}

TEST_CASE("open_model: a model that is a link may have its data beside what it points to") {
  const Folder folder;
  OnnxParts parts;
  parts.initializers = {tensor_external("w", {{"location", "w.bin"}})};
  folder.put("blobs/model", onnx_file(parts));
  folder.put("blobs/weights", "abcd");
  fs::create_directories(folder.folder.path() / "snapshot");
  fs::create_symlink("../blobs/model", folder.folder.path() / "snapshot" / "m.onnx");
  fs::create_symlink("../blobs/weights", folder.folder.path() / "snapshot" / "w.bin");
  CHECK(open_model(folder.folder.path() / "snapshot" / "m.onnx"));
}
