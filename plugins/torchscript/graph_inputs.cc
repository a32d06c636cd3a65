// SPDX-License-Identifier: Apache-2.0
#include "graph_inputs.h"

#include <hasten/plugin.hpp>

#include <charconv>
#include <cstddef>

namespace hasten {
namespace {

// The JSON of a GraphSpec, read in one pass: what is not asked for is skipped. A plugin sees
// no header of the core, and the text comes from the host, so this is no general parser.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <class F>
  void object(F&& member) {
    expect('{');
    if (accept('}')) return;
    do {
      const std::string key = string();
      expect(':');
      member(key);
    } while (accept(','));
    expect('}');
  }

  template <class F>
  void array(F&& item) {
    expect('[');
    if (accept(']')) return;
    do item();
    while (accept(','));
    expect(']');
  }

  std::string string() {
    expect('"');
    std::string out;
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() != '\\') {
        out += take();
        continue;
      }
      take();
      escape(out);
    }
    if (rest_.empty()) fail();
    take();
    return out;
  }

  int64_t integer() {
    space();
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (failure != std::errc()) fail();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  void skip() {
    space();
    if (rest_.empty()) fail();
    if (rest_.front() == '{') return object([this](const std::string&) { skip(); });
    if (rest_.front() == '[') return array([this] { skip(); });
    if (rest_.front() == '"') return static_cast<void>(string());
    const size_t end = rest_.find_first_of(",]} \t\r\n");
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end);
  }

 private:
  [[noreturn]] void fail() const {
    throw PluginError(HASTEN_INVALID_ARGUMENT, "the graph that was given is no JSON");
  }
  void space() {
    const size_t end = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end);
  }
  char take() {
    if (rest_.empty()) fail();
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  bool accept(char c) {
    space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  void escape(std::string& out) {
    constexpr std::string_view kFrom = "nrtbf", kTo = "\n\r\t\b\f";
    const char c = take();
    if (const size_t at = kFrom.find(c); at != kFrom.npos) {
      out += kTo[at];
    } else if (c != 'u') {
      out += c;
    } else {
      unsigned code = 0;
      for (int i = 0; i < 4; ++i) {
        const char digit = take();
        code = code * 16 + static_cast<unsigned>(digit <= '9'   ? digit - '0'
                                                 : digit <= 'F' ? digit - 'A' + 10
                                                                : digit - 'a' + 10);
      }
      // Names of arguments are identifiers: anything beyond control characters comes as UTF-8.
      out += code < 0x80 ? static_cast<char>(code) : '?';
    }
  }

  std::string_view rest_;
};

GraphInput read_input(Reader& json) {
  GraphInput input;
  json.object([&](const std::string& key) {
    if (key == "name") {
      input.name = json.string();
    } else if (key == "dtype") {
      input.dtype = json.string();
    } else if (key == "axes") {
      json.array([&] {
        int64_t smallest = 1;
        json.object([&](const std::string& field) {
          if (field == "min") {
            smallest = json.integer();
          } else {
            json.skip();
          }
        });
        input.smallest.push_back(smallest);
      });
    } else {
      json.skip();
    }
  });
  return input;
}

}  // namespace

std::vector<GraphInput> graph_inputs(std::string_view graph_json) {
  std::vector<GraphInput> inputs;
  Reader json(graph_json);
  json.object([&](const std::string& key) {
    if (key == "inputs") {
      json.array([&] { inputs.push_back(read_input(json)); });
    } else {
      json.skip();
    }
  });
  return inputs;
}

}  // namespace hasten
