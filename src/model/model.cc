// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/onnx_file.h"
#include "model/recognise.h"

#include <algorithm>
#include <map>

namespace hasten {
namespace {

namespace fs = std::filesystem;

Error bad(const fs::path& path, std::string_view what, std::string hint = "") {
  return Error{Code::kInvalidArgument, format("{}: {}", path.string(), what), std::move(hint)};
}

Error bad_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / "saved_model.pb", ignored)) {
    return bad(path, "is a folder with a TensorFlow SavedModel",
               "convert it to ONNX, for example with the package tf2onnx");
  }
  std::vector<std::string> models;
  for (fs::directory_iterator it(path, ignored), end; it != end; it.increment(ignored)) {
    const std::string suffix = it->path().extension().string();
    if (suffix == ".onnx" || suffix == ".pt" || suffix == ".pt2" || suffix == ".hasten") {
      models.push_back(it->path().filename().string());
    }
  }
  std::ranges::sort(models);
  std::string hint = models.empty() ? "give one file: an .onnx, .pt or .pt2, or a .hasten that "
                                      "`hasten tune` wrote"
                                    : format("it holds {}", join(models, ", "));
  if (fs::exists(path / "manifest.json", ignored)) {
    hint = "it seems to be an unpacked artifact: give the .hasten file, as `hasten tune` wrote it";
  }
  return bad(path, "is a folder, not a model file", std::move(hint));
}

Status check_is_model_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  if (type == fs::file_type::directory) return bad_folder(path);
  return check_is_file(path);
}

// "/dev/stdin" and its like lead every process to another file: children are told which is meant.
Result<fs::path> known_to_all(const fs::path& path) {
  const std::string text = path.string();
  if (text != "/dev/stdin" && !text.starts_with("/dev/fd/") && !text.starts_with("/proc/")) {
    return path;
  }
  std::error_code failure;
  fs::path real = fs::canonical(path, failure);
  if (!failure) return real;
  return bad(path, "leads to a file that has no name any more",
             "copy the content into a file and give that");
}

// Is `inner` in `folder` or deeper? Both are canonical.
bool lies_in(const fs::path& inner, const fs::path& folder) {
  const auto [rest, unused] = std::ranges::mismatch(folder, inner);
  return rest == folder.end();
}

// Where external data lies, after links are followed; fails unless that is in the model's
// folder. A model that is itself a link (download caches keep such) may have its data
// beside the link or beside what the link points to.
Result<fs::path> resolve_external(const fs::path& model, const OnnxExternalData& data) {
  const fs::path location(data.location);
  const auto refuse = [&](std::string_view what, std::string hint = "") {
    return bad(model,
               format("external data '{}' of tensor '{}' {}", data.location, data.tensor, what),
               std::move(hint));
  };
  const std::string inside = "external data must lie in the model's own folder";
  if (location.is_absolute()) return refuse("has an absolute path", inside);
  if (std::ranges::find(location, fs::path("..")) != location.end()) {
    return refuse("leaves the model's folder", inside);
  }
  const fs::path file = model.parent_path() / location;
  std::error_code failure;
  const fs::path real = fs::canonical(file, failure);
  if (failure) {
    return refuse(format("is missing: {}", failure.message()),
                  "keep the data files beside the model, under their names");
  }
  const fs::path beside = fs::canonical(model.parent_path(), failure);
  const fs::path behind = fs::canonical(model, failure).parent_path();
  if (!lies_in(real, beside) && !lies_in(real, behind)) {
    return refuse("is a link that leaves the model's folder",
                  "copy the files that the links point to, for example with cp -rL");
  }
  if (!fs::is_regular_file(real, failure)) {
    return refuse("is no regular file", "copy what it gives into a file of that name");
  }
  const uint64_t size = fs::file_size(real, failure);
  if (failure) return refuse(failure.message());
  const uint64_t left = size - std::min(size, data.offset);
  if (data.offset > size || (data.length && *data.length > left)) {
    return refuse(format("is truncated: bytes {} to {} are needed, but it has {}", data.offset,
                         data.offset + data.length.value_or(0), size),
                  "copy or download it again");
  }
  return real;
}

// The external files of an ONNX model by the name that the model has for them. Refuses what
// cannot be answered by any engine.
Result<std::map<std::string, fs::path>> external_files(const Model& model) {
  auto read = read_onnx(model.path);
  if (!read) {
    Error error = std::move(read).error();
    if (error.code != Code::kInvalidArgument) return error;
    return bad(model.path,
               format("is an ONNX model that is truncated or damaged ({})", error.message),
               "copy, download or export it again");
  }
  if (read->outputs.empty()) {
    return bad(model.path, "is an ONNX model without outputs, so there is nothing to compute",
               "name what it is to give as outputs of its graph, and export it again");
  }
  std::map<std::string, fs::path> files;
  for (const OnnxExternalData& data : read->external_data) {
    HASTEN_TRY(files[data.location], resolve_external(model.path, data));
  }
  return files;
}

}  // namespace

std::string format_title(const std::string& format) {
  if (format == "onnx") return "ONNX .onnx";
  if (format == "torchscript") return "TorchScript .pt";
  if (format == "pt2") return "torch.export .pt2";
  if (format == "aoti") return "AOTInductor package";
  return format;
}

Result<Model> open_model(const fs::path& path) {
  Model model;
  std::error_code failure;
  model.path = fs::absolute(path, failure).lexically_normal();
  if (path.empty() || failure) return bad(path, "is no path");
  HASTEN_TRY_STATUS(check_is_model_file(model.path));
  HASTEN_TRY(model.path, known_to_all(model.path));
  HASTEN_TRY(model.format, recognise(model.path));
  std::map<std::string, fs::path> external;
  if (model.format == "onnx") {
    HASTEN_TRY(external, external_files(model));
  }
  model.size_bytes = fs::file_size(model.path, failure);
  HASTEN_TRY(model.fingerprint, sha256_of_file(model.path));
  if (external.empty()) return model;
  std::string all = model.fingerprint;
  for (const auto& [location, file] : external) {
    HASTEN_TRY(const std::string hash, sha256_of_file(file));
    all += "\n" + hash + " " + location;
    model.size_bytes += fs::file_size(file, failure);
  }
  model.fingerprint = sha256(all);
  return model;
}

}  // namespace hasten
