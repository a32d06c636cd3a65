// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the reason there is none.
//
// A subset of std::expected (g++ 12 has it in C++23 mode only), so that an
// alias can replace this file one day. Reading the wrong side throws
// std::logic_error: that is a bug in the caller, never a run-time condition.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hasten {

enum class Code {
  kUnavailable = 1,  // Not on this machine: library, driver, device.
  kUnsupported,      // Not for this model: operator, dtype, shape.
  kInvalidArgument,  // The caller's mistake.
  kBuildFailed,
  kRunFailed,
  kOutOfMemory,
  kTimedOut,
  kCrashed,      // The child process died.
  kWrongResult,  // The values differ from the original's.
  kIo,
  kCancelled,
  kInternal,
};

// "unavailable", "wrong_result", ...: the words of reports and of Python.
constexpr std::string_view to_string(Code code) {
  switch (code) {
    case Code::kUnavailable: return "unavailable";
    case Code::kUnsupported: return "unsupported";
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kBuildFailed: return "build_failed";
    case Code::kRunFailed: return "run_failed";
    case Code::kOutOfMemory: return "out_of_memory";
    case Code::kTimedOut: return "timed_out";
    case Code::kCrashed: return "crashed";
    case Code::kWrongResult: return "wrong_result";
    case Code::kIo: return "io";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: break;
  }
  return "internal";
}

// The inverse; an unknown word is kInternal.
constexpr Code code_from_string(std::string_view word) {
  for (int i = 1; i < static_cast<int>(Code::kInternal); ++i) {
    if (to_string(static_cast<Code>(i)) == word) return static_cast<Code>(i);
  }
  return Code::kInternal;
}

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  std::string message;  // One sentence: what failed and on what.
  std::string hint{};   // What the reader can do about it; may be empty.

  // "loading plugin 'ort': libonnxruntime.so.1: cannot open ..."
  Error&& within(std::string_view what) && {
    message.insert(0, std::string(what) + ": ");
    return std::move(*this);
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return at<0>(state_); }
  const T& value() const& { return at<0>(state_); }
  T&& value() && { return std::move(at<0>(state_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return at<1>(state_); }
  const Error& error() const& { return at<1>(state_); }
  Error&& error() && { return std::move(at<1>(state_)); }

 private:
  template <size_t I, class V>
  static auto& at(V& v) {
    if (auto* p = std::get_if<I>(&v)) return *p;
    throw std::logic_error(I == 0 ? "Result: value() of a failure: " + std::get<1>(v).message
                                  : "Result: error() of a success");
  }

  std::variant<T, Error> state_;
};

// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT
  bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  Error& error() & { return error_.value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_.value()); }

 private:
  std::optional<Error> error_;
};

}  // namespace hasten

#define HASTEN_CONCAT_(a, b) a##b
#define HASTEN_CONCAT(a, b) HASTEN_CONCAT_(a, b)

// HASTEN_TRY(auto model, open(path)): binds the value, or returns the Error.
#define HASTEN_TRY(decl, expr)                              \
  auto HASTEN_CONCAT(try_, __LINE__) = (expr);              \
  if (!HASTEN_CONCAT(try_, __LINE__))                       \
    return std::move(HASTEN_CONCAT(try_, __LINE__)).error(); \
  decl = *std::move(HASTEN_CONCAT(try_, __LINE__))

#define HASTEN_TRY_STATUS(expr)                      \
  do {                                               \
    if (auto s_ = (expr); !s_) return std::move(s_).error(); \
  } while (false)
