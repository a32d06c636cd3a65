// SPDX-License-Identifier: Apache-2.0
// What a plugin that takes ONNX files must know about one and no engine tells: the
// declared inputs and outputs (a scalar and an unknown rank are told apart), and
// which other files hold its weights. Header-only and no part of the ABI.
//
// Reads the protobuf wire format directly; the field numbers are those of onnx.proto.
#pragma once

#include <hasten/plugin.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hasten {

struct OnnxDimension {
  int64_t size = -1;   // -1: not fixed.
  std::string symbol;  // Of an axis that is not fixed; may be empty.
};

struct OnnxValue {
  std::string name;
  std::string kind;        // "tensor", "sequence", "map", "optional", "sparse tensor", "untyped".
  int element_type = 0;    // onnx.TensorProto.DataType, of a tensor.
  bool has_shape = false;  // False: not even the rank is known.
  std::vector<OnnxDimension> shape;
};

struct OnnxFile {
  std::vector<OnnxValue> inputs;  // In order, without those that have a value of their own.
  std::vector<OnnxValue> outputs;
  std::vector<std::string> external;  // Weight files, as the model names them, each once.
  int64_t opset = 0;                  // Of the default domain; 0: none named.
};

namespace plugin_detail {

// Fields of one protobuf message, in the order of the file.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end. Throws std::invalid_argument on bytes that are no message.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    field_ = key >> 3;
    switch (key & 7) {
      case 0:
        number_ = varint();
        text_ = {};
        break;
      case 1:
        take(8);
        break;
      case 2:
        take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        throw std::invalid_argument("a field of an unknown kind");
    }
    if (field_ == 0) throw std::invalid_argument("a field without a number");
    return true;
  }
  uint64_t field() const { return field_; }
  int64_t number() const { return static_cast<int64_t>(number_); }
  std::string_view text() const { return text_; }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw std::invalid_argument("it ends in the middle");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw std::invalid_argument("a number of too many bytes");
  }
  void take(uint64_t size) {
    if (size > rest_.size()) throw std::invalid_argument("it ends in the middle");
    text_ = rest_.substr(0, size);
    number_ = 0;
    rest_.remove_prefix(size);
  }

  std::string_view rest_, text_;
  uint64_t field_ = 0, number_ = 0;
};

// Walks model, graph, node, attribute and tensor for the weight files.
class OnnxWalk {
 public:
  OnnxFile model(std::string_view bytes) {
    bool has_graph = false;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 7) {
        has_graph = true;
        graph(r.text(), &file_);
      } else if (r.field() == 8) {
        opset(r.text());
      } else if (r.field() == 25) {  // A function: its nodes may carry tensors.
        for (WireReader f(r.text()); f.next();) {
          if (f.field() == 7) node(f.text());
        }
      }
    }
    if (!has_graph) throw std::invalid_argument("it holds no graph");
    return std::move(file_);
  }

 private:
  // Real models nest control flow a few levels deep; a file made to exhaust the
  // stack nests thousands.
  static constexpr int kDeepest = 200;

  void opset(std::string_view bytes) {
    std::string_view domain;
    int64_t version = 0;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) domain = r.text();
      if (r.field() == 2) version = r.number();
    }
    if (domain.empty() || domain == "ai.onnx") file_.opset = std::max(file_.opset, version);
  }

  // `ports`: where the inputs and outputs of the outermost graph go.
  void graph(std::string_view bytes, OnnxFile* ports) {
    if (++depth_ > kDeepest) throw std::invalid_argument("its graphs nest too deeply");
    std::vector<OnnxValue> inputs;
    std::set<std::string, std::less<>> has_value;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) node(r.text());
      if (r.field() == 5) has_value.emplace(tensor(r.text()));
      if (r.field() == 15) has_value.emplace(sparse_tensor(r.text()));
      if (ports && r.field() == 11) inputs.push_back(value(r.text()));
      if (ports && r.field() == 12) ports->outputs.push_back(value(r.text()));
    }
    for (OnnxValue& input : inputs) {
      if (!has_value.count(input.name)) ports->inputs.push_back(std::move(input));
    }
    --depth_;
  }

  void node(std::string_view bytes) {
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 5) attribute(r.text());
    }
  }

  void attribute(std::string_view bytes) {
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 5 || r.field() == 10) tensor(r.text());
      if (r.field() == 6 || r.field() == 11) graph(r.text(), nullptr);
      if (r.field() == 22 || r.field() == 23) sparse_tensor(r.text());
    }
  }

  std::string sparse_tensor(std::string_view bytes) {
    std::string name;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) name = tensor(r.text());  // The values carry the name.
      if (r.field() == 2) tensor(r.text());
    }
    return name;
  }

  std::string tensor(std::string_view bytes) {
    std::string name;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 8) name = r.text();
      if (r.field() == 13) external_entry(r.text());
    }
    return name;
  }

  void external_entry(std::string_view bytes) {
    std::string_view key, text;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) key = r.text();
      if (r.field() == 2) text = r.text();
    }
    if (key == "location" && seen_.emplace(text).second) file_.external.emplace_back(text);
  }

  static OnnxValue value(std::string_view bytes) {
    OnnxValue out;
    out.kind = "untyped";
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) out.name = r.text();
      if (r.field() == 2) type(r.text(), out);
    }
    return out;
  }

  static void type(std::string_view bytes, OnnxValue& out) {
    for (WireReader r(bytes); r.next();) {
      switch (r.field()) {
        case 1:
          out.kind = "tensor";
          tensor_type(r.text(), out);
          break;
        case 4:
          out.kind = "sequence";
          break;
        case 5:
          out.kind = "map";
          break;
        case 8:
          out.kind = "sparse tensor";
          break;
        case 9:
          out.kind = "optional";
          break;
        default:
          break;
      }
    }
  }

  static void tensor_type(std::string_view bytes, OnnxValue& out) {
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 1) out.element_type = static_cast<int>(r.number());
      if (r.field() != 2) continue;
      out.has_shape = true;
      for (WireReader s(r.text()); s.next();) {
        if (s.field() != 1) continue;
        OnnxDimension& axis = out.shape.emplace_back();
        for (WireReader d(s.text()); d.next();) {
          if (d.field() == 1) axis.size = d.number() < 0 ? -1 : d.number();
          if (d.field() == 2) axis.symbol = d.text();
        }
      }
    }
  }

  OnnxFile file_;
  std::set<std::string, std::less<>> seen_;
  int depth_ = 0;
};

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
inline OnnxFile read_onnx(const std::string& path) {
  const plugin_detail::MappedFile mapped(path);
  OnnxFile file;
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

// The JSON of inspect(). Throws HASTEN_UNSUPPORTED, with names, when a value is no tensor.
inline std::string onnx_signature(const OnnxFile& file, const std::string& path) {
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
