// SPDX-License-Identifier: Apache-2.0
// What a plugin that takes ONNX files must know about one and no engine tells: the
// declared inputs and outputs (a scalar and an unknown rank are told apart), and
// which other files hold its weights. Header-only and no part of the ABI.
#pragma once

#include <hasten/plugin.hpp>
#include <hasten/plugin_onnx_wire.hpp>
#include <hasten/plugin_tensor.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hasten {
namespace plugin_detail {

// A file in memory, read as its pages are touched: weights are skipped unread.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || ::fstat(fd, &info) != 0) {
      const int failure = errno;
      if (fd >= 0) ::close(fd);
      throw PluginError(HASTEN_INVALID_ARGUMENT,
                        path + ": " + std::generic_category().message(failure));
    }
    size_ = static_cast<size_t>(info.st_size);
    if (size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (data_ == MAP_FAILED) {
      throw PluginError(HASTEN_INVALID_ARGUMENT,
                        path + ": " + std::generic_category().message(errno));
    }
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (size_ > 0) ::munmap(data_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

inline bool is_within(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto [in_folder, in_file] =
      std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return in_folder == folder.end();
}

// The model is from a stranger: what it names must lie in its own folder, also
// behind symbolic links (of the model too: caches link both into one store).
inline void check_external(const std::filesystem::path& model, const std::string& location) {
  namespace fs = std::filesystem;
  const fs::path relative = fs::path(location).lexically_normal();
  std::error_code ignored;
  const fs::path target = fs::weakly_canonical(folder_of(model) / relative, ignored);
  const bool inside = is_within(target, fs::weakly_canonical(folder_of(model), ignored)) ||
                      is_within(target, folder_of(fs::weakly_canonical(model, ignored)));
  if (relative.empty() || relative.is_absolute() || *relative.begin() == ".." || !inside) {
    throw PluginError(HASTEN_UNSUPPORTED, model.string() + ": its weight file '" + location +
                                              "' is not in the model's folder");
  }
}

}  // namespace plugin_detail

// Throws HASTEN_INVALID_ARGUMENT when unreadable, HASTEN_BUILD_FAILED when it is no
// ONNX model, HASTEN_UNSUPPORTED when it points outside of its folder.
inline OnnxDeclaration read_onnx(const std::string& path) {
  const plugin_detail::MappedFile mapped(path);
  OnnxDeclaration file;
  try {
    file = plugin_detail::OnnxWalk().model(mapped.bytes());
  } catch (const std::invalid_argument& e) {
    throw PluginError(HASTEN_BUILD_FAILED,
                      path + ": not a whole ONNX model: " + std::string(e.what()));
  }
  for (const std::string& location : file.external) plugin_detail::check_external(path, location);
  return file;
}

// NumPy's name of an ONNX element type, or ONNX's own for one that hasten has no
// tensor of (`known` false).
struct OnnxDType {
  std::string name;
  bool known = true;
};
inline OnnxDType onnx_dtype(int element_type) {
  constexpr std::array<std::string_view, 17> kNames = {
      "undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
      "int32",     "int64",   "string",    "bool",       "float16", "float64",
      "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};
  constexpr std::array<std::string_view, 7> kSmall = {
      "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "uint4",
      "int4",          "float4_e2m1"};
  const auto index = static_cast<size_t>(element_type);
  if (index < kNames.size()) return {std::string(kNames[index]), index != 0 && index != 8};
  if (index < kNames.size() + kSmall.size()) {
    return {std::string(kSmall[index - kNames.size()]), false};
  }
  return {"onnx_type_" + std::to_string(element_type), false};
}

inline std::optional<DLDataType> onnx_dlpack_type(int element_type) {
  constexpr std::array<std::pair<DLDataTypeCode, int>, 17> kTypes = {{{kDLOpaqueHandle, 0},
                                                                      {kDLFloat, 32},
                                                                      {kDLUInt, 8},
                                                                      {kDLInt, 8},
                                                                      {kDLUInt, 16},
                                                                      {kDLInt, 16},
                                                                      {kDLInt, 32},
                                                                      {kDLInt, 64},
                                                                      {kDLOpaqueHandle, 0},
                                                                      {kDLBool, 8},
                                                                      {kDLFloat, 16},
                                                                      {kDLFloat, 64},
                                                                      {kDLUInt, 32},
                                                                      {kDLUInt, 64},
                                                                      {kDLComplex, 64},
                                                                      {kDLComplex, 128},
                                                                      {kDLBfloat, 16}}};
  const auto index = static_cast<size_t>(element_type);
  if (index >= kTypes.size() || kTypes[index].second == 0) return std::nullopt;
  const auto [code, bits] = kTypes[index];
  return DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

// What run() takes or gives for these values; `what` is "input" or "output". Throws
// HASTEN_UNSUPPORTED, with the name, for what no tensor of ours can hold.
inline std::vector<PortSpec> onnx_ports(const std::vector<OnnxValue>& values, const char* what,
                                        const std::string& path) {
  std::vector<PortSpec> ports;
  for (const OnnxValue& v : values) {
    const std::optional<DLDataType> dtype = onnx_dlpack_type(v.element_type);
    if (!dtype) {
      throw PluginError(
          HASTEN_UNSUPPORTED,
          path + ": " + what + " '" + v.name + "' is not a tensor of numbers but a " +
              (v.kind == "tensor" ? onnx_dtype(v.element_type).name + " tensor" : v.kind));
    }
    PortSpec& port = ports.emplace_back();
    port.name = v.name;
    port.dtype = *dtype;
    port.any_rank = !v.has_shape;
    for (const OnnxDimension& axis : v.shape) port.shape.push_back(axis.size);
  }
  return ports;
}

// The JSON of inspect(). Throws HASTEN_UNSUPPORTED, with names, when a value is no tensor.
inline std::string onnx_signature(const OnnxDeclaration& file, const std::string& path) {
  const auto list = [&](const std::vector<OnnxValue>& values, const char* what) {
    std::string out = "[";
    for (const OnnxValue& v : values) {
      if (v.kind != "tensor") {
        throw PluginError(HASTEN_UNSUPPORTED, path + ": " + what + " '" + v.name + "' is " +
                                                  (v.kind == "optional" ? "an " : "a ") + v.kind +
                                                  ", not a tensor");
      }
      const OnnxDType dtype = onnx_dtype(v.element_type);
      out += (out.size() > 1 ? "," : "") + ("{\"name\":" + plugin_detail::quoted(v.name)) +
             (dtype.known ? ",\"dtype\":" : ",\"foreign_dtype\":") +
             plugin_detail::quoted(dtype.name);
      if (v.has_shape) {
        std::string shape;
        for (const OnnxDimension& axis : v.shape) {
          shape +=
              (shape.empty() ? "" : ",") +
              (axis.size >= 0 ? std::to_string(axis.size) : plugin_detail::quoted(axis.symbol));
        }
        out += ",\"shape\":[" + shape + "]";
      }
      out += "}";
    }
    return out + "]";
  };
  return "{\"inputs\":" + list(file.inputs, "input") +
         ",\"outputs\":" + list(file.outputs, "output") + "}";
}

}  // namespace hasten
