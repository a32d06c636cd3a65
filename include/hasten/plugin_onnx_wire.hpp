// SPDX-License-Identifier: Apache-2.0
// What an ONNX file declares, read from its bytes: inputs, outputs and weight files.
// Reads the protobuf wire format directly; the field numbers are those of onnx.proto.
// Header-only and no part of the ABI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

struct OnnxDeclaration {
  std::vector<OnnxValue> inputs;  // In order, without those that have a value of their own.
  std::vector<OnnxValue> outputs;
  std::vector<std::string> external;  // Weight files, as the model names them, each once.
  int64_t opset = 0;                  // Of the default domain; 0: none named.
  // Element types with weights in a field of wider integers instead of raw bytes, and one
  // such tensor of each. A rare form, which engines have been seen to misread.
  std::map<int, std::string> in_integers;
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
  OnnxDeclaration model(std::string_view bytes) {
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
  // stack nests thousands. hasten itself refuses the same files before a plugin sees them.
  static constexpr int kDeepest = 64;  // Below the outermost graph.

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
  void graph(std::string_view bytes, OnnxDeclaration* ports) {
    if (depth_ > kDeepest) throw std::invalid_argument("its graphs nest too deeply");
    ++depth_;
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
    int element_type = 0;
    bool in_integers = false;
    for (WireReader r(bytes); r.next();) {
      if (r.field() == 2) element_type = static_cast<int>(r.number());
      if (r.field() == 5 || r.field() == 11) in_integers = true;
      if (r.field() == 8) name = r.text();
      if (r.field() == 13) external_entry(r.text());
    }
    if (in_integers) file_.in_integers.emplace(element_type, name);
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
          // Some exporters write one of these for every axis they know nothing about;
          // as a symbol it would make those axes equal.
          if (d.field() == 2 && d.text() != "?" && d.text() != "None") axis.symbol = d.text();
        }
      }
    }
  }

  OnnxDeclaration file_;
  std::set<std::string, std::less<>> seen_;
  int depth_ = 0;
};

}  // namespace plugin_detail
}  // namespace hasten
