// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace hasten {
namespace {

// Behind the bracket that belongs to the one at `at`; npos where it is never closed.
size_t behind_bracket(std::string_view text, size_t at) {
  const char open = text[at], close = open == '(' ? ')' : open == '[' ? ']' : '>';
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

// Behind "void a::f<int (*)()>(const b&, int) const [with T = float] "; npos where it is none.
size_t behind_signature(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && text[at] != '(') {
    at = text[at] == '<' ? behind_bracket(text, at) : at + 1;
  }
  if (at >= text.size()) return std::string_view::npos;
  // More than one pair: of operator()(), of a lambda in the function.
  while (at < text.size() && text[at] != ' ') {
    const bool bracket = text[at] == '(' || text[at] == '<';
    at = bracket ? behind_bracket(text, at) : at + 1;
  }
  if (at >= text.size()) return std::string_view::npos;
  if (text.substr(at).starts_with(" const ")) at += std::string_view(" const").size();
  if (text.substr(at).starts_with(" [with ")) at = behind_bracket(text, at + 1);
  if (at >= text.size()) return std::string_view::npos;
  return text[at] == ' ' ? at + 1 : at;
}

struct Range {
  size_t begin, end;
};

// The next "/a/b.cc:12 " at `from` or behind it.
std::optional<Range> next_place(std::string_view text, size_t from) {
  for (size_t colon; (colon = text.find(':', from)) != std::string_view::npos; from = colon + 1) {
    const size_t end = text.find_first_not_of("0123456789", colon + 1);
    if (end == std::string_view::npos || end == colon + 1 || text[end] != ' ') continue;
    const size_t before = text.find_last_of(" :\n", colon - 1);
    const size_t begin = colon == 0 || before == std::string_view::npos ? 0 : before + 1;
    const std::string_view file = text.substr(begin, colon - begin);
    const std::string_view suffix = file.substr(std::min(file.find_last_of('.'), file.size()));
    const bool is_source =
        suffix == ".h" || suffix == ".hpp" || suffix == ".cc" || suffix == ".cpp";
    if (is_source && file.starts_with('/')) return Range{begin, end + 1};
  }
  return std::nullopt;
}

std::string number_behind(std::string_view message, std::string_view words) {
  const size_t at = message.find(words);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = message.substr(at + words.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

}  // namespace

std::string without_source_places(std::string message) {
  size_t from = 0;
  while (const std::optional<Range> place = next_place(message, from)) {
    const size_t signature = behind_signature(std::string_view(message).substr(place->end));
    const size_t end = place->end + (signature == std::string::npos ? 0 : signature);
    message.erase(place->begin, end - place->begin);
    from = place->begin;
  }
  // It ends many of its sentences with a line end, too.
  message.erase(message.find_last_not_of(" \n") + 1);
  return message;
}

std::string remedy_for(const std::string& message) {
  const std::string newer =
      "or install a newer ONNX Runtime: pip install --upgrade onnxruntime";
  if (const std::string most = number_behind(message, "is till opset "); !most.empty()) {
    return "export the model again with an opset of at most " + most + ", " + newer;
  }
  const std::string most = number_behind(message, "max supported IR version: ");
  if (!most.empty()) {
    return "save the model again with an ir_version of at most " + most + ", " + newer;
  }
  return "";
}

}  // namespace hasten
