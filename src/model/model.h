// SPDX-License-Identifier: Apache-2.0
// The file that the user brings, recognised by its content, never by its name.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace hasten {

struct Model {
  std::filesystem::path path;  // Absolute.
  std::string format;          // "onnx", "torchscript", "pt2", "hasten" (an artifact)
  std::string fingerprint;     // SHA-256 over the content, external data included.
  uint64_t size_bytes = 0;     // External data included.
};

// A format in the words of who has such a file: "TorchScript .pt".
std::string format_title(const std::string& format);

// Recognises, checks that the file is whole as far as its container tells (zip
// directory, protobuf framing, external data present and inside the model's
// folder), hashes. Errors say what the file is instead ("is a pickled state_dict,
// not a TorchScript archive"), and the remedy.
Result<Model> open_model(const std::filesystem::path& path);

}  // namespace hasten
