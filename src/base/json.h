// SPDX-License-Identifier: Apache-2.0
// A JSON value. Objects keep the order in which their members were added, so that
// a report reads as it was written. nlohmann-json stands behind json.cc only.
#pragma once

#include <hasten/result.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hasten {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool v) : value_(v) {}
  Json(int v) : value_(static_cast<int64_t>(v)) {}
  Json(unsigned v) : value_(static_cast<int64_t>(v)) {}
  Json(int64_t v) : value_(v) {}
  Json(uint64_t v) : value_(static_cast<int64_t>(v)) {}
  Json(double v) : value_(v) {}
  Json(const char* v) : value_(std::string(v)) {}
  Json(std::string_view v) : value_(std::string(v)) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(Array v) : value_(std::move(v)) {}
  explicit Json(Object v) : value_(std::move(v)) {}
  static Json object(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
  static Json array() { return Json(Array{}); }

  // Fails with the position of the mistake. Depth is limited to 128, a name may stand
  // once in an object, and whole numbers beyond int64_t become doubles.
  static Result<Json> parse(std::string_view text);
  // One line, or indented by `indent` spaces (arrays of plain values stay on one line).
  // A double reads back as the same double; NaN and infinity become null.
  // Bytes that are no UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value, or the given one when it is of another type.
  bool as_bool(bool otherwise = false) const;
  int64_t as_int(int64_t otherwise = 0) const;
  double as_double(double otherwise = 0) const;
  const std::string& as_string() const;  // "" when no string.
  const Array& items() const;            // Empty when no array.
  const Object& members() const;         // Empty when no object.

  // Object access: null when absent or no object.
  const Json& operator[](std::string_view key) const;
  bool contains(std::string_view key) const { return !(*this)[key].is_null(); }
  Json& set(std::string_view key, Json value);  // Replaces; makes a null an object. Returns *this.
  void push(Json value);                        // Makes a null an array.

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace hasten
