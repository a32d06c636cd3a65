// SPDX-License-Identifier: Apache-2.0
#include "model/recognise.h"

#include "base/files.h"
#include "base/text.h"
#include "model/onnx_file.h"

#include <algorithm>

namespace hasten {
namespace {

// Enough for every magic number below; tar has its own at byte 257.
constexpr size_t kPrefix = 512;

constexpr std::string_view kTakes =
    "hasten takes .onnx, TorchScript (.pt from torch.jit.save) and torch.export (.pt2) files";

struct Magic {
  size_t at;
  std::string_view bytes;
  std::string_view what;
  std::string_view hint;  // Empty: kTakes.
};

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it and give the model inside";
constexpr std::string_view kFromTensorFlow =
    "convert it to ONNX, for example with the package tf2onnx";
constexpr std::string_view kWeightsOnly =
    "it holds weights without the network: load them into the model in Python, then "
    "torch.export.save() or torch.jit.save() the model";

constexpr Magic kMagics[] = {
    {0, "version https://git-lfs"sv, "a Git LFS pointer, not the file itself",
     "fetch the file with `git lfs pull`"},
    {0, "\x89HDF"sv, "an HDF5 file (Keras)", kFromTensorFlow},
    {0, "GGUF"sv, "a GGUF file (llama.cpp)", ""},
    {0, "\x1f\x8b"sv, "compressed with gzip", kUnpack},
    {0, "BZh"sv, "compressed with bzip2", kUnpack},
    {0,
     "\xfd"
     "7zXZ"sv,
     "compressed with xz", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed with Zstandard", kUnpack},
    {0, "7z\xbc\xaf"sv, "a 7z archive", kUnpack},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {4, "TFL3"sv, "a TensorFlow Lite model", kFromTensorFlow},
    {4, "ORTM"sv, "an ONNX Runtime model in ORT format", "give the .onnx that it was made from"},
    {4, "ET12"sv, "an ExecuTorch program",
     "it is compiled already: give the exported program (.pt2) that it was made from"},
    {0, "ftrt"sv, "a TensorRT engine", "it is compiled already: give the model it was made from"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or a shared library", ""},
    {0, "\x93NUMPY"sv, "a NumPy array", "arrays are inputs: give it with --input, as .npz"},
    {0, "<?xml"sv, "an XML file (OpenVINO IR has this form)",
     "give the model that it was converted from"},
    {0, "<!DOCTYPE html"sv, "a web page", "the download of the model seems to have failed"},
    {0, "<html"sv, "a web page", "the download of the model seems to have failed"},
};

bool has_at(std::string_view text, size_t at, std::string_view part) {
  return text.size() >= at && text.substr(at).starts_with(part);
}

// safetensors: eight bytes with the length of a JSON object, then the object.
bool looks_like_safetensors(std::string_view prefix) {
  return prefix.size() > 9 && prefix[8] == '{' && (prefix[9] == '"' || prefix[9] == ' ') &&
         prefix[6] == '\0' && prefix[7] == '\0';
}

bool looks_like_pickle(std::string_view prefix) {
  return prefix.size() > 2 && prefix[0] == '\x80' && prefix[1] >= 2 && prefix[1] <= 5;
}

Error foreign(const std::string& path, std::string_view is, std::string_view hint) {
  return Error{Code::kInvalidArgument, format("{}: is {}", path, is),
               std::string(hint.empty() ? kTakes : hint)};
}

std::string hex_of(std::string_view bytes) {
  std::vector<std::string> parts;
  for (const char c : bytes) parts.push_back(format("{:02x}", static_cast<unsigned char>(c)));
  return join(parts, " ");
}

// What torch and others put into a zip; torch puts all into one top folder.
struct ZipContent {
  bool code = false, data_pkl = false, constants_pkl = false;
  bool models = false, inductor = false, archive_format = false, old_export = false;
  bool manifest = false, arrays = true, keras = false;
};

ZipContent content_of(const std::vector<ZipEntry>& entries) {
  ZipContent content;
  for (const ZipEntry& entry : entries) {
    const std::string& name = entry.name;
    content.manifest |= name == "manifest.json";
    content.old_export |= name == "serialized_exported_program.json";
    content.keras |= name == "model.weights.h5";
    content.arrays &= name.ends_with(".npy");
    const size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(slash + 1);
    content.code |= rest.starts_with("code/");
    content.data_pkl |= rest == "data.pkl";
    content.constants_pkl |= rest == "constants.pkl";
    content.models |= rest.starts_with("models/") && rest.ends_with(".json");
    content.inductor |= rest.starts_with("data/aotinductor/");
    content.archive_format |= rest == "archive_format";
  }
  return content;
}

}  // namespace

Result<std::string> recognise_zip(const std::vector<ZipEntry>& entries, const std::string& what) {
  const ZipContent content = content_of(entries);
  if (content.data_pkl && content.constants_pkl && content.code) return std::string("torchscript");
  if ((content.archive_format && content.models) || content.old_export) return std::string("pt2");
  if (content.inductor) {
    return foreign(what, "an AOTInductor package: already compiled",
                   "give the exported program (torch.export.save) that it was made from");
  }
  if (content.manifest) return std::string("hasten");
  if (content.data_pkl) {
    return foreign(what, "a checkpoint written by torch.save, not a TorchScript archive",
                   "hasten loads no pickles: load it in Python, then torch.export.save() or "
                   "torch.jit.save(torch.jit.trace(model, inputs), path) the model");
  }
  if (content.keras) return foreign(what, "a Keras model", kFromTensorFlow);
  if (entries.empty()) return foreign(what, "an empty zip archive", "");
  if (content.arrays) {
    return foreign(what, "an archive of NumPy arrays (.npz)",
                   "arrays are inputs: give it with --input");
  }
  return foreign(what, "a zip archive, but no model, and no artifact: it has no manifest.json", "");
}

Error foreign_file(std::string_view prefix, const std::string& what) {
  for (const Magic& magic : kMagics) {
    if (has_at(prefix, magic.at, magic.bytes)) return foreign(what, magic.what, magic.hint);
  }
  if (looks_like_safetensors(prefix)) return foreign(what, "a safetensors file", kWeightsOnly);
  if (looks_like_pickle(prefix)) {
    return foreign(what, "a pickle (torch.save wrote such files before 1.6), not a model",
                   "hasten loads no pickles: load it in Python, then torch.export.save() or "
                   "torch.jit.save() the model");
  }
  return foreign(what,
                 format("no model that hasten knows (it begins with the bytes {})",
                        hex_of(prefix.substr(0, 8))),
                 "");
}

Result<std::string> recognise(const std::filesystem::path& path) {
  HASTEN_TRY(const std::string prefix, read_prefix(path, kPrefix));
  const std::string what = path.string();
  if (prefix.empty()) {
    return Error{Code::kInvalidArgument, format("{}: is empty", what), std::string(kTakes)};
  }
  // A text header, for models that are no more than a description (tests have such).
  constexpr std::string_view kHeader = "hasten-model ";
  if (prefix.starts_with(kHeader)) {
    const std::string_view line = std::string_view(prefix).substr(0, prefix.find('\n'));
    const std::string_view format_name = trim(line.substr(kHeader.size()));
    if (!format_name.empty()) return std::string(format_name);
  }
  if (prefix.starts_with("PK\x03\x04") || prefix.starts_with("PK\x05\x06")) {
    auto zip = ZipReader::open(path);
    if (!zip) {
      return Error{Code::kInvalidArgument,
                   format("{}: is truncated or not a zip: it begins like one, but its directory "
                          "cannot be read ({})",
                          what, zip.error().message),
                   "copy or download it again"};
    }
    return recognise_zip(zip->entries(), what);
  }
  if (starts_like_onnx(prefix)) return std::string("onnx");
  const Error error = foreign_file(prefix, what);
  // Protobuf has no magic number and no fixed order of fields: the whole file decides.
  if (read_onnx(path)) return std::string("onnx");
  return error;
}

}  // namespace hasten
