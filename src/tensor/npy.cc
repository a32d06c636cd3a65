// SPDX-License-Identifier: Apache-2.0
// The .npy format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "tensor/npz.h"
#include "tensor/ops.h"

namespace hasten {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";
// Data starts at a multiple of this, as NumPy writes it, so that files can be mapped.
constexpr size_t kHeaderAlignment = 64;
// NumPy itself knows no more axes; a longer list is damage.
constexpr size_t kMaxRank = 64;

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

Error damaged(std::string_view what) {
  return Error{Code::kInvalidArgument, format("not a valid .npy array: {}", what)};
}

// The header is a Python dictionary literal of three keys; this reads no more of
// Python than that.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  Result<Header> parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    if (!take('{')) return damaged("its header is no dictionary");
    while (!take('}')) {
      HASTEN_TRY(const std::string key, string());
      if (!take(':')) return damaged("its header lacks a ':'");
      if (key == "descr" && !descr) {
        HASTEN_TRY(header.descr, parse_descr());
        descr = true;
      } else if (key == "fortran_order" && !order) {
        HASTEN_TRY(header.fortran_order, boolean());
        order = true;
      } else if (key == "shape" && !shape) {
        HASTEN_TRY(header.shape, tuple());
        shape = true;
      } else {
        return damaged(format("its header has the key '{}'", key));
      }
      if (!take(',') && peek() != '}') return damaged("its header ends early");
    }
    if (!descr || !order || !shape) return damaged("its header lacks descr, order or shape");
    return header;
  }

 private:
  char peek() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }

  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    peek();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  Result<std::string> string() {
    const char quote = peek();
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : rest_.npos;
    if (end == rest_.npos) return damaged("its header lacks a string");
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  Result<std::string> parse_descr() {
    if (peek() == '[') {
      return Error{Code::kUnsupported, "structured dtypes (records) are not supported",
                   "save each field as an array of its own"};
    }
    return string();
  }

  Result<bool> boolean() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    return damaged("its fortran_order is no bool");
  }

  Result<Shape> tuple() {
    Shape shape;
    if (!take('(')) return damaged("its shape is no tuple");
    while (!take(')')) {
      peek();
      int64_t size = 0;
      const char* end = rest_.data() + rest_.size();
      const auto [stop, failure] = std::from_chars(rest_.data(), end, size);
      if (failure != std::errc() || size < 0) return damaged("its shape holds no valid size");
      rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
      take('L');  // Python 2 wrote long integers so.
      shape.push_back(size);
      if (shape.size() > kMaxRank) return damaged("its shape has too many axes");
      if (!take(',') && peek() != ')') return damaged("its shape ends early");
    }
    return shape;
  }

  std::string_view rest_;
};

struct Storage {
  DType dtype = DType::kFloat32;
  bool big_endian = false;
};

Error unsupported_descr(std::string_view descr, char kind) {
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    return Error{Code::kUnsupported, format("dtype '{}': {} are not supported", descr, what),
                 std::string(hint)};
  };
  switch (kind) {
    case 'O':
      return refuse("Python objects (pickle)", "save it with a numeric dtype");
    case 'S':
    case 'a':
    case 'U':
      return refuse("strings", "tokenize before saving");
    case 'M':
    case 'm':
      return refuse("dates and time differences", "save it as int64");
    case 'V':
      return refuse("raw and structured elements", "save each field as an array");
    default:
      return refuse("arrays of this dtype", "convert it to a dtype of at most 64 bits");
  }
}

Result<Storage> storage_of(std::string_view descr) {
  if (descr == "bfloat16") return Storage{DType::kBFloat16, false};
  std::string_view rest = descr;
  char order = '|';
  if (!rest.empty() && std::string_view("<>=|").find(rest[0]) != std::string_view::npos) {
    order = rest[0];
    rest.remove_prefix(1);
  }
  constexpr std::pair<std::string_view, DType> kKnown[] = {
      {"b1", DType::kBool},       {"?", DType::kBool},     {"u1", DType::kUInt8},
      {"i1", DType::kInt8},       {"u2", DType::kUInt16},  {"i2", DType::kInt16},
      {"u4", DType::kUInt32},     {"i4", DType::kInt32},   {"u8", DType::kUInt64},
      {"i8", DType::kInt64},      {"f2", DType::kFloat16}, {"V2", DType::kBFloat16},
      {"f4", DType::kFloat32},    {"f8", DType::kFloat64}, {"c8", DType::kComplex64},
      {"c16", DType::kComplex128}};
  for (const auto& [name, dtype] : kKnown) {
    if (rest == name) return Storage{dtype, order == '>'};
  }
  return unsupported_descr(descr, rest.empty() ? '\0' : rest[0]);
}

std::string descr_of(DType dtype) {
  const size_t bytes = size_bytes(dtype);
  const char order = bytes == 1 ? '|' : '<';
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kBFloat16:
      return "|V2";
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return format("{}f{}", order, bytes);
    case DType::kComplex64:
    case DType::kComplex128:
      return format("{}c{}", order, bytes);
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return format("{}i{}", order, bytes);
    default:
      return format("{}u{}", order, bytes);
  }
}

void swap_bytes(Tensor& tensor) {
  const bool complex = tensor.dtype() == DType::kComplex64 || tensor.dtype() == DType::kComplex128;
  const size_t width = size_bytes(tensor.dtype()) / (complex ? 2 : 1);
  auto* bytes = static_cast<char*>(tensor.data());
  for (size_t at = 0; at < tensor.nbytes(); at += width) {
    std::reverse(bytes + at, bytes + at + width);
  }
}

// A row-major copy of what lies in column-major order.
Tensor from_fortran_order(const Tensor& tensor) {
  Shape shape(tensor.shape().begin(), tensor.shape().end()), strides(shape.size());
  int64_t step = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = step;
    step *= shape[d];
  }
  return Tensor::view_of(tensor.dtype(), const_cast<void*>(tensor.data()), std::move(shape),
                         std::move(strides), nullptr)
      .clone();
}

Result<Tensor> tensor_of(const Header& header, std::string_view data) {
  HASTEN_TRY(const Storage storage, storage_of(header.descr));
  // What is claimed is believed only when it is there: a damaged size must not be
  // answered with an allocation.
  const size_t count = element_count(header.shape), width = size_bytes(storage.dtype);
  if (count > data.size() / width) {
    return damaged(format("its shape {} of {} needs more than the {} bytes of data that are there",
                          shape_text(header.shape), to_string(storage.dtype), data.size()));
  }
  Tensor tensor = Tensor::empty(storage.dtype, header.shape);
  if (count == 0) return tensor;
  std::memcpy(tensor.data(), data.data(), tensor.nbytes());
  if (storage.big_endian) swap_bytes(tensor);
  if (storage.dtype == DType::kBool) {
    // A C++ bool must be 0 or 1; a file may hold any byte.
    auto* bytes = static_cast<uint8_t*>(tensor.data());
    std::transform(bytes, bytes + count, bytes, [](uint8_t b) { return b != 0; });
  }
  if (header.fortran_order && header.shape.size() > 1) return from_fortran_order(tensor);
  return tensor;
}

}  // namespace

std::string to_npy(const Tensor& tensor) {
  std::string shape = "(";
  for (const int64_t n : tensor.shape()) shape += std::to_string(n) + ", ";
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);  // "(3, 4)", but "(3,)".
  if (tensor.shape().size() == 1) shape.pop_back();
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}",
                              descr_of(tensor.dtype()), shape);
  // Magic, two bytes of version, two of header length; the header ends in a newline.
  const size_t start = kMagic.size() + 4;
  header.append(kHeaderAlignment - (start + header.size() + 1) % kHeaderAlignment, ' ');
  header += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
          static_cast<char>(header.size() >> 8)};
  out += header;
  const Tensor copy = tensor.is_compact() ? Tensor() : tensor.clone();
  const Tensor& compact = copy ? copy : tensor;
  return out.append(static_cast<const char*>(compact.data()), compact.nbytes());
}

Result<Tensor> from_npy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return damaged("it does not start with \\x93NUMPY");
  const std::string_view version = bytes.substr(kMagic.size(), 2);
  if (version.size() < 2) return damaged("it ends within the header");
  if (version[0] < 1 || version[0] > 3) {
    return Error{Code::kUnsupported,
                 format("version {} of the .npy format is not supported; versions 1 to 3 are",
                        static_cast<int>(static_cast<unsigned char>(version[0])))};
  }
  const size_t length_bytes = version[0] == 1 ? 2 : 4;
  std::string_view rest = bytes.substr(kMagic.size() + 2);
  if (rest.size() < length_bytes) return damaged("it ends within the header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(rest[i])) << (8 * i);
  }
  rest.remove_prefix(length_bytes);
  if (rest.size() < length) return damaged("it ends within the header");
  HASTEN_TRY(const Header header, HeaderParser(rest.substr(0, length)).parse());
  return tensor_of(header, rest.substr(length));
}

}  // namespace hasten
