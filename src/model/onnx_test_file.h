// SPDX-License-Identifier: Apache-2.0
// ONNX files for tests, encoded by hand after onnx.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten::testing {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string varint_field(uint32_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}
inline std::string bytes_field(uint32_t number, std::string_view content) {
  return varint(number << 3 | 2) + varint(content.size()) + std::string(content);
}

inline std::string tensor_bytes(std::string_view name, std::string_view raw) {
  return varint_field(1, raw.size()) + varint_field(2, 2) + bytes_field(8, name) +
         bytes_field(9, raw);
}
inline std::string tensor_external(
    std::string_view name, const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = varint_field(2, 1) + bytes_field(8, name) + varint_field(14, 1);
  for (const auto& [key, value] : entries) {
    out += bytes_field(13, bytes_field(1, key) + bytes_field(2, value));
  }
  return out;
}

struct OnnxParts {
  std::vector<std::string> inputs = {"x"}, outputs = {"y"};
  std::vector<std::string> initializers;  // TensorProto.
  std::vector<std::string> nodes;         // NodeProto.
  std::string more;                       // Further fields of the model.
};

inline std::string onnx_graph(const OnnxParts& parts) {
  std::string graph;
  for (const std::string& node : parts.nodes) graph += bytes_field(1, node);
  graph += bytes_field(2, "main");
  for (const std::string& tensor : parts.initializers) graph += bytes_field(5, tensor);
  for (const std::string& name : parts.inputs) graph += bytes_field(11, bytes_field(1, name));
  for (const std::string& name : parts.outputs) graph += bytes_field(12, bytes_field(1, name));
  return graph;
}

inline std::string onnx_file(const OnnxParts& parts) {
  return varint_field(1, 8) + bytes_field(2, "pytorch") + bytes_field(7, onnx_graph(parts)) +
         bytes_field(8, bytes_field(1, "") + varint_field(2, 17)) + parts.more;
}

}  // namespace hasten::testing
