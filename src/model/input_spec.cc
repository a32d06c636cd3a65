// SPDX-License-Identifier: Apache-2.0
#include "model/recording.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hasten {
namespace {

constexpr std::string_view kForm =
    "the form is name=dtype[axis,...] with an optional value range @low..high behind it, as in "
    "image=float32[B,3,224,224] or ids=int64[B,T=8..128]@0..30521";

constexpr DType kAllDTypes[] = {
    DType::kBool,     DType::kUInt8,   DType::kInt8,    DType::kUInt16,    DType::kInt16,
    DType::kUInt32,   DType::kInt32,   DType::kUInt64,  DType::kInt64,     DType::kFloat16,
    DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128,
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The largest and smallest value of an integer dtype, as doubles.
std::optional<std::pair<double, double>> integer_limits(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return {{0, 255}};
    case DType::kInt8:
      return {{-128, 127}};
    case DType::kUInt16:
      return {{0, 65535}};
    case DType::kInt16:
      return {{-32768, 32767}};
    case DType::kUInt32:
      return {{0, 4294967295.0}};
    case DType::kInt32:
      return {{-2147483648.0, 2147483647.0}};
    case DType::kUInt64:
      return {{0, 0x1p64}};
    case DType::kInt64:
      return {{-0x1p63, 0x1p63}};
    default:
      return std::nullopt;
  }
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view batch_symbol)
      : text_(text), batch_symbol_(batch_symbol) {}

  Result<InputSpec> parse() {
    InputSpec spec;
    const size_t equals = text_.find('=');
    if (equals == std::string_view::npos) return error("'=' is missing");
    spec.name = std::string(trim(text_.substr(0, equals)));
    if (spec.name.empty()) return error("the name of the input is missing");
    at_ = equals + 1;
    HASTEN_TRY(spec.dtype, dtype());
    HASTEN_TRY(spec.axes, axes());
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '@') {
      ++at_;
      HASTEN_TRY(auto range, values(spec.dtype));
      spec.values = range;
    }
    if (at_ < text_.size()) return error(format("'{}' is too much", text_.substr(at_)));
    return spec;
  }

 private:
  Error error(std::string_view what) const {
    return Error{Code::kInvalidArgument, format("'{}': at position {}: {}", text_, at_ + 1, what),
                 std::string(kForm)};
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_dots() {
    if (text_.substr(at_, 2) != "..") return false;
    at_ += 2;
    return true;
  }

  Result<DType> dtype() {
    const size_t end = text_.find('[', at_);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      return error("'[' is missing behind the dtype");
    }
    const std::string_view word = trim(text_.substr(at_, end - at_));
    const auto dtype = dtype_from_string(word);
    if (!dtype) {
      std::vector<std::string> known;
      for (const DType d : kAllDTypes) known.emplace_back(to_string(d));
      const auto near = closest(word, known);
      return error(format(
          "unknown dtype '{}'; {}", word,
          near ? format("did you mean '{}'?", *near) : format("known are {}", join(known, ", "))));
    }
    at_ = end + 1;
    return *dtype;
  }

  Result<std::vector<Axis>> axes() {
    std::vector<Axis> axes;
    if (take(']')) return axes;
    while (true) {
      HASTEN_TRY(Axis axis, this->axis());
      axes.push_back(std::move(axis));
      if (take(']')) return axes;
      if (!take(',')) return error(at_ < text_.size() ? "',' or ']' expected" : "']' is missing");
    }
  }

  Result<Axis> axis() {
    skip_spaces();
    Axis axis;
    if (at_ < text_.size() && is_digit(text_[at_])) {
      HASTEN_TRY(const int64_t size, integer());
      if (!take('*')) {
        axis.min = axis.max = size;
        return axis;
      }
      if (size < 1) return error("a multiplier must be at least 1");
      if (size > kMaxMultiplier) return error(format("a multiplier of at most {} expected", kMaxMultiplier));
      axis.multiplier = size;
      skip_spaces();
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])))) {
      ++at_;
    }
    if (at_ == begin) {
      return error("a size (3), a symbol (T), or a symbol with its range (T=8..128) expected");
    }
    axis.symbol = std::string(text_.substr(begin, at_ - begin));
    axis.kind = axis.symbol == batch_symbol_ ? AxisKind::kBatch : AxisKind::kDynamic;
    if (!take('=')) return axis;
    return range_of(std::move(axis));
  }

  Result<Axis> range_of(Axis axis) {
    skip_spaces();
    const size_t begin = at_;
    HASTEN_TRY(const int64_t low, integer());
    int64_t high = low;
    if (take_dots()) {
      HASTEN_TRY(high, integer());
    }
    if (high < low || high < 1) {
      at_ = begin;
      return error(format("the range {}..{} of {} is empty", low, high, axis.symbol));
    }
    axis.min = low * axis.multiplier;
    axis.max = high * axis.multiplier;
    return axis;
  }

  Result<int64_t> integer() {
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, failure] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (failure == std::errc::result_out_of_range || value > kMaxSize) {
      return error(format("a size of at most {} expected", kMaxSize));
    }
    if (failure != std::errc() || value < 0) return error("a whole number of at least 0 expected");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  Result<double> number(std::string_view word) {
    double value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) {
      return error(format("'{}' is no number", word));
    }
    return value;
  }

  Result<std::pair<double, double>> values(DType dtype) {
    // Split first: "0..5" read as a number would be "0." and leave ".5".
    const std::string_view rest = text_.substr(at_);
    const size_t dots = rest.find("..");
    if (dots == std::string_view::npos) return error("a value range is low..high");
    HASTEN_TRY(const double low, number(trim(rest.substr(0, dots))));
    HASTEN_TRY(const double high, number(trim(rest.substr(dots + 2))));
    if (high < low) return error("the value range is empty");
    if (dtype == DType::kBool) return error("a bool has no value range");
    if (const auto limits = integer_limits(dtype)) {
      if (low != std::floor(low) || high != std::floor(high)) {
        return error(format("the values of {} are whole numbers", to_string(dtype)));
      }
      if (low < limits->first || high > limits->second) {
        return error(format("the value range does not fit {}", to_string(dtype)));
      }
    }
    at_ = text_.size();
    return std::pair(low, high);
  }

  std::string_view text_;
  std::string_view batch_symbol_;
  size_t at_ = 0;
};

}  // namespace

bool looks_like_spec(std::string_view text) {
  const size_t equals = text.find('=');
  return equals != std::string_view::npos && text.find('[', equals) != std::string_view::npos;
}

Result<InputSpec> parse_input_spec(std::string_view text, std::string_view batch_symbol) {
  return Parser(text, batch_symbol).parse();
}

}  // namespace hasten
