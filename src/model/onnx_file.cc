// SPDX-License-Identifier: Apache-2.0
#include "model/onnx_file.h"

#include "base/text.h"
#include "model/wire_reader.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace hasten {
namespace {

// Graphs nest in nodes (If, Loop, Scan); a file cannot make us recurse without end.
constexpr int kMaxDepth = 64;
// Names and paths; longer ones are no names.
constexpr uint64_t kMaxText = 1 << 20;
// The first IR version that must say which operator sets it uses (ONNX, docs/IR.md).
constexpr int64_t kFirstIrWithOpsets = 3;

// Field numbers of onnx.proto.
namespace model_field {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kTraining = 20,
                   kFunction = 25;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kSparse = 15;
}
namespace tensor_field {
constexpr uint32_t kName = 8, kExternalData = 13, kDataLocation = 14;
}
namespace attribute_field {
constexpr uint32_t kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparse = 22,
                   kSparses = 23;
}
constexpr uint32_t kNodeAttribute = 5;
constexpr uint32_t kFunctionNode = 7, kFunctionAttribute = 11;

// ModelProto as of IR version 12: numbers of text and message fields.
constexpr uint32_t kModelBytes[] = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26};
constexpr uint32_t kLastModelField = 26;
// A field that a later version adds may be skipped; one far away is no ONNX.
constexpr uint32_t kLastPlausibleField = 100;

bool plausible(const WireField& field) {
  if (field.number > kLastModelField) {
    return field.number <= kLastPlausibleField && field.type != WireType::kFixed64 &&
           field.type != WireType::kFixed32;
  }
  if (field.number == 1 || field.number == 5) return field.type == WireType::kVarint;
  return std::ranges::find(kModelBytes, field.number) != std::end(kModelBytes) &&
         field.type == WireType::kBytes;
}

class Scanner {
 public:
  explicit Scanner(WireReader& reader) : reader_(reader) {}

  Result<OnnxFile> model() {
    bool has_ir = false, has_graph = false;
    HASTEN_TRY_STATUS(each(0, reader_.size(), [&](const WireField& field) -> Status {
      if (!plausible(field)) {
        return Error{Code::kInvalidArgument,
                     format("field {} is none of an ONNX model's", field.number)};
      }
      switch (field.number) {
        case model_field::kIrVersion:
          has_ir = true;
          file_.ir_version = static_cast<int64_t>(field.value);
          return {};
        case model_field::kProducer:
          return read_text(field, file_.producer);
        case model_field::kOpset:
          return opset(field);
        case model_field::kGraph:
          has_graph = true;
          return graph(field, 0);
        case model_field::kTraining:
          return training(field);
        case model_field::kFunction:
          return function(field);
        default:
          return {};
      }
    }));
    const auto lacks = [&](std::string_view what) {
      return Error{Code::kInvalidArgument, format("has no {}", what)};
    };
    if (!has_ir) return lacks("IR version");
    if (!has_graph) return lacks("graph");
    if (file_.opsets.empty() && file_.ir_version >= kFirstIrWithOpsets) return lacks("opset");
    std::erase_if(file_.inputs, [&](const std::string& s) { return initializers_.contains(s); });
    return std::move(file_);
  }

 private:
  template <class Visit>
  Status each(uint64_t begin, uint64_t end, Visit visit) {
    for (uint64_t at = begin; at < end;) {
      HASTEN_TRY(const WireField field, reader_.next(at, end));
      HASTEN_TRY_STATUS(visit(field));
    }
    return {};
  }
  template <class Visit>
  Status each(const WireField& message, Visit visit) {
    if (message.type != WireType::kBytes) {
      return Error{Code::kInvalidArgument, format("field {} is no message", message.number)};
    }
    return each(message.begin, message.end, visit);
  }

  Status read_text(const WireField& field, std::string& to) {
    HASTEN_TRY(to, reader_.text(field, kMaxText));
    return {};
  }

  Status opset(const WireField& message) {
    std::pair<std::string, int64_t> opset{"", 0};
    HASTEN_TRY_STATUS(each(message, [&](const WireField& field) -> Status {
      if (field.number == 1) return read_text(field, opset.first);
      if (field.number == 2) opset.second = static_cast<int64_t>(field.value);
      return {};
    }));
    file_.opsets.push_back(std::move(opset));
    return {};
  }

  // Only the outermost graph (depth 0) has the model's inputs and outputs.
  Status graph(const WireField& message, int depth) {
    if (depth > kMaxDepth) {
      return Error{Code::kInvalidArgument,
                   format("graphs are nested more than {} deep", kMaxDepth)};
    }
    return each(message, [&](const WireField& field) -> Status {
      switch (field.number) {
        case graph_field::kNode:
          return node(field, depth);
        case graph_field::kInitializer:
          return tensor(field, depth == 0);
        case graph_field::kSparse:
          return sparse_tensor(field);
        case graph_field::kInput:
          return depth == 0 ? value_name(field, file_.inputs) : Status();
        case graph_field::kOutput:
          return depth == 0 ? value_name(field, file_.outputs) : Status();
        default:
          return {};
      }
    });
  }

  Status value_name(const WireField& message, std::vector<std::string>& names) {
    std::string& name = names.emplace_back();
    return each(message, [&](const WireField& field) -> Status {
      return field.number == 1 ? read_text(field, name) : Status();
    });
  }

  Status node(const WireField& message, int depth) {
    return each(message, [&](const WireField& field) -> Status {
      return field.number == kNodeAttribute ? attribute(field, depth) : Status();
    });
  }

  Status attribute(const WireField& message, int depth) {
    return each(message, [&](const WireField& field) -> Status {
      switch (field.number) {
        case attribute_field::kTensor:
        case attribute_field::kTensors:
          return tensor(field, false);
        case attribute_field::kGraph:
        case attribute_field::kGraphs:
          return graph(field, depth + 1);
        case attribute_field::kSparse:
        case attribute_field::kSparses:
          return sparse_tensor(field);
        default:
          return {};
      }
    });
  }

  Status sparse_tensor(const WireField& message) {
    return each(message, [&](const WireField& field) -> Status {
      return field.number <= 2 ? tensor(field, false) : Status();  // values, indices
    });
  }

  Status training(const WireField& message) {
    return each(message, [&](const WireField& field) -> Status {
      return field.number <= 2 ? graph(field, 1) : Status();  // initialization, algorithm
    });
  }

  Status function(const WireField& message) {
    return each(message, [&](const WireField& field) -> Status {
      if (field.number == kFunctionNode) return node(field, 1);
      return field.number == kFunctionAttribute ? attribute(field, 1) : Status();
    });
  }

  Status tensor(const WireField& message, bool is_initializer) {
    OnnxExternalData data;
    bool external = false;
    HASTEN_TRY_STATUS(each(message, [&](const WireField& field) -> Status {
      switch (field.number) {
        case tensor_field::kName:
          return read_text(field, data.tensor);
        case tensor_field::kDataLocation:
          external = field.value == 1;
          return {};
        case tensor_field::kExternalData:
          return external_entry(field, data);
        default:
          return {};
      }
    }));
    if (is_initializer) initializers_.insert(data.tensor);
    if (!external && data.location.empty()) return {};
    if (data.location.empty()) {
      return Error{Code::kInvalidArgument,
                   format("tensor '{}' lies in another file, which is not named", data.tensor)};
    }
    file_.external_data.push_back(std::move(data));
    return {};
  }

  Status external_entry(const WireField& message, OnnxExternalData& data) {
    std::string key, value;
    HASTEN_TRY_STATUS(each(message, [&](const WireField& field) -> Status {
      if (field.number == 1) return read_text(field, key);
      return field.number == 2 ? read_text(field, value) : Status();
    }));
    if (key == "location") data.location = value;
    if (key != "offset" && key != "length") return {};
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failure != std::errc() || end != value.data() + value.size()) {
      return Error{Code::kInvalidArgument,
                   format("the {} of tensor '{}' in its file is '{}'", key, data.tensor, value)};
    }
    if (key == "offset") {
      data.offset = number;
    } else if (number > 0) {  // Some writers put 0 for "to the end".
      data.length = number;
    }
    return {};
  }

  WireReader& reader_;  // Borrowed.
  OnnxFile file_;
  std::unordered_set<std::string> initializers_;
};

}  // namespace

bool starts_like_onnx(std::string_view prefix) {
  // ir_version comes first in every writer; then any of ModelProto's fields.
  if (prefix.size() < 3 || prefix[0] != 0x08) return false;
  const auto version = static_cast<unsigned char>(prefix[1]);
  const auto tag = static_cast<unsigned char>(prefix[2]);
  constexpr unsigned char kNext[] = {0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72};
  return version >= 1 && version < 64 && std::ranges::find(kNext, tag) != std::end(kNext);
}

Result<OnnxFile> read_onnx(const std::filesystem::path& path) {
  HASTEN_TRY(WireReader reader, WireReader::open(path));
  return Scanner(reader).model();
}

}  // namespace hasten
