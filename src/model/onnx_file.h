// SPDX-License-Identifier: Apache-2.0
// As much of an ONNX file as can be read without ONNX: its framing, and the names in it.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {

// Tensor data that lies in another file.
struct OnnxExternalData {
  std::string tensor;
  std::string location;  // As written: relative to the model's folder.
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // None: to the end of the file.
};

struct OnnxFile {
  int64_t ir_version = 0;
  std::string producer;
  std::vector<std::pair<std::string, int64_t>> opsets;  // Domain ("" is ONNX's own), version.
  std::vector<std::string> inputs, outputs;             // Of the graph; no initializers.
  std::vector<OnnxExternalData> external_data;          // Of graphs, subgraphs and functions.
};

// Is the start of a file that of an ONNX model? A damaged one counts.
bool starts_like_onnx(std::string_view prefix);

// Reads the tags of the whole file and skips the weights: memory does not grow with them.
// kInvalidArgument with the offset (not the path) when the framing of protobuf does not end
// where the file does, and when what an ONNX model must have is missing.
Result<OnnxFile> read_onnx(const std::filesystem::path& path);

}  // namespace hasten
