// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>

#include "base/text.h"

namespace hasten {
namespace {

// Deeper text is no file of ours; every walk over a value recurses this far at most.
constexpr size_t kMaxDepth = 128;

// Counts the bytes that the parser has taken: its own position reaches the handler
// only with its own errors, not with ours.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* taken_;  // Borrowed from parse().
};

// Builds the value bottom up. The names are those that nlohmann's SAX parser calls.
class Builder {
 public:
  explicit Builder(const size_t* taken) : taken_(taken) {}

  bool null() { return add(Json()); }
  bool boolean(bool v) { return add(Json(v)); }
  bool number_integer(int64_t v) { return add(Json(v)); }
  bool number_unsigned(uint64_t v) {
    // No signed integer holds it; a double is what a reader in another language gets too.
    if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return add(Json(static_cast<double>(v)));
    }
    return add(Json(static_cast<int64_t>(v)));
  }
  bool number_float(double v, const std::string&) { return add(Json(v)); }
  bool string(std::string& v) { return add(Json(std::move(v))); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // Not in JSON text.

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool key(std::string& name) {
    Frame& frame = open_.back();
    if (!frame.names.insert(name).second) return fail(format("'{}' stands twice", name));
    frame.key = std::move(name);
    return true;
  }
  bool end_object() {
    Json::Object members = std::move(open_.back().members);
    open_.pop_back();
    return add(Json(std::move(members)));
  }
  bool end_array() {
    Json::Array items = std::move(open_.back().items);
    open_.pop_back();
    return add(Json(std::move(items)));
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& failure) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    const std::string_view text = failure.what();
    const size_t end = text.find("] ");
    failure_ = std::string(end == std::string_view::npos ? text : text.substr(end + 2));
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& failure() const { return failure_; }

 private:
  struct Frame {
    bool is_object = false;
    std::string key;
    Json::Object members;
    Json::Array items;
    std::unordered_set<std::string> names;
  };

  bool fail(const std::string& what) {
    failure_ = format("{} at byte {}", what, *taken_);
    return false;
  }
  bool open(bool is_object) {
    if (open_.size() >= kMaxDepth) return fail(format("nested deeper than {} levels", kMaxDepth));
    open_.emplace_back().is_object = is_object;
    return true;
  }
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = open_.back(); frame.is_object) {
      frame.members.emplace_back(std::move(frame.key), std::move(value));
    } else {
      frame.items.push_back(std::move(value));
    }
    return true;
  }

  const size_t* taken_;  // Borrowed from parse().
  std::vector<Frame> open_;
  Json root_;
  std::string failure_;
};

bool is_plain(const Json& value) { return !value.is_array() && !value.is_object(); }

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& value, int depth) {
    if (value.is_object()) {
      write_object(value.members(), depth);
    } else if (value.is_array()) {
      write_array(value.items(), depth);
    } else if (value.is_string()) {
      write_string(value.as_string());
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      out_ += std::to_string(value.as_int());
    } else if (value.is_number()) {
      write_double(value.as_double());
    } else {
      out_ += "null";
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void write_object(const Json::Object& members, int depth) {
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      separate(i, depth + 1, true);
      write_string(members[i].first);
      out_ += indent_ < 0 ? ":" : ": ";
      write(members[i].second, depth + 1);
    }
    if (!members.empty()) new_line(depth);
    out_ += '}';
  }
  void write_array(const Json::Array& items, int depth) {
    bool plain = true;
    for (const Json& item : items) plain = plain && is_plain(item);
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      separate(i, depth + 1, !plain);
      write(items[i], depth + 1);
    }
    if (!plain) new_line(depth);
    out_ += ']';
  }
  void separate(size_t i, int depth, bool own_line) {
    if (i > 0) out_ += own_line || indent_ < 0 ? "," : ", ";
    if (own_line) new_line(depth);
  }
  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * static_cast<size_t>(depth), ' ');
  }
  void write_string(const std::string& text) {
    using nlohmann::json;
    out_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  void write_double(double v) {
    if (!std::isfinite(v)) {
      out_ += "null";
      return;
    }
    char text[32];  // The longest shortest form has 24 characters.
    const auto [end, failure] = std::to_chars(text, text + sizeof text, v);
    const std::string_view written(text, static_cast<size_t>(end - text));
    out_ += written;
    // Without a point it would read back as an integer.
    if (written.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }

  int indent_;
  std::string out_;
};

}  // namespace

Result<Json> Json::parse(std::string_view text) {
  size_t taken = 0;
  Builder builder(&taken);
  const bool parsed =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &taken),
                                CountingIterator(text.data() + text.size(), &taken), &builder);
  if (!parsed) return Error{Code::kInvalidArgument, "JSON: " + builder.failure()};
  return builder.take();
}

std::string Json::dump(int indent) const {
  Writer writer(indent);
  writer.write(*this, 0);
  return writer.take();
}

bool Json::as_bool(bool otherwise) const {
  const bool* v = std::get_if<bool>(&value_);
  return v ? *v : otherwise;
}

int64_t Json::as_int(int64_t otherwise) const {
  const int64_t* v = std::get_if<int64_t>(&value_);
  return v ? *v : otherwise;
}

double Json::as_double(double otherwise) const {
  if (const double* v = std::get_if<double>(&value_)) return *v;
  if (const int64_t* v = std::get_if<int64_t>(&value_)) return static_cast<double>(*v);
  return otherwise;
}

const std::string& Json::as_string() const {
  static const std::string kNone;
  const std::string* v = std::get_if<std::string>(&value_);
  return v ? *v : kNone;
}

const Json::Array& Json::items() const {
  static const Array kNone;
  const Array* v = std::get_if<Array>(&value_);
  return v ? *v : kNone;
}

const Json::Object& Json::members() const {
  static const Object kNone;
  const Object* v = std::get_if<Object>(&value_);
  return v ? *v : kNone;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json kNull;
  for (const Member& member : members()) {
    if (member.first == key) return member.second;
  }
  return kNull;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  Object* object = std::get_if<Object>(&value_);
  if (!object) throw std::logic_error("Json::set() on a value that is no object");
  for (Member& member : *object) {
    if (member.first == key) {
      member.second = std::move(value);
      return *this;
    }
  }
  object->emplace_back(std::string(key), std::move(value));
  return *this;
}

void Json::push(Json value) {
  if (is_null()) value_ = Array{};
  Array* array = std::get_if<Array>(&value_);
  if (!array) throw std::logic_error("Json::push() on a value that is no array");
  array->push_back(std::move(value));
}

}  // namespace hasten
