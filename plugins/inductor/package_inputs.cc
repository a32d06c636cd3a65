// SPDX-License-Identifier: Apache-2.0
#include "package_inputs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

namespace hasten {
namespace {

std::vector<std::string_view> words_of(std::string_view line, char separator) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw PluginError(HASTEN_INVALID_ARGUMENT, file + ": " + what);
}

int64_t number(std::string_view text, const std::string& file) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(file, "'" + std::string(text) + "' is no size");
  }
  return value;
}

// Names are percent-encoded: they may hold spaces.
std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ec == std::errc()) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "SIZE" or "SYMBOL:MIN:MAX:STEP", MAX empty for no bound.
PackageAxis axis_of(std::string_view text, std::vector<std::string>& symbols,
                    const std::string& file) {
  const std::vector<std::string_view> parts = words_of(text, ':');
  if (parts.size() == 1) {
    const int64_t size = number(text, file);
    return {.min = size, .max = size};
  }
  if (parts.size() != 4) fail(file, "'" + std::string(text) + "' is no axis");
  const std::string symbol(parts[0]);
  auto at = std::find(symbols.begin(), symbols.end(), symbol);
  if (at == symbols.end()) at = symbols.insert(at, symbol);
  return {.min = number(parts[1], file),
          .max = parts[2].empty() ? -1 : number(parts[2], file),
          .step = std::max<int64_t>(1, number(parts[3], file)),
          .symbol = static_cast<int>(at - symbols.begin())};
}

std::string wanted(const PackageAxis& axis) {
  if (axis.min == axis.max) return std::to_string(axis.min);
  std::string text = std::to_string(axis.min) + " to " +
                     (axis.max < 0 ? std::string("any size") : std::to_string(axis.max));
  if (axis.step > 1) text += " in steps of " + std::to_string(axis.step);
  return text;
}

bool fits(const PackageAxis& axis, int64_t size) {
  return size >= axis.min && (axis.max < 0 || size <= axis.max) &&
         (size - axis.min) % axis.step == 0;
}

}  // namespace

PackageInputs PackageInputs::parse(std::string_view text, const std::string& file) {
  PackageInputs result;
  std::vector<std::string> symbols;
  const std::vector<std::string_view> lines = words_of(text, '\n');
  if (lines.front() != "hasten-aoti 1") fail(file, "is no list of a package's inputs");
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> words = words_of(line, ' ');
    if (words[0] == "cpu") {
      result.cpu.assign(words.begin() + 1, words.end());
    } else if (words[0] == "input" && words.size() >= 3) {
      PackageInput input{.name = decoded(words[1]), .dtype = std::string(words[2]), .axes = {}};
      for (size_t i = 3; i < words.size(); ++i) {
        input.axes.push_back(axis_of(words[i], symbols, file));
      }
      result.inputs.push_back(std::move(input));
    } else if (words[0] == "output" && words.size() == 2) {
      result.outputs.push_back(decoded(words[1]));
    }
  }
  result.n_symbols = static_cast<int>(symbols.size());
  return result;
}

PackageInputs PackageInputs::read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file, "cannot be read; it belongs beside the package");
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), file);
}

void PackageInputs::check(std::span<const DLTensor> given, size_t n_outputs) const {
  if (given.size() != inputs.size() || n_outputs != outputs.size()) {
    throw PluginError(HASTEN_INVALID_ARGUMENT,
                      "takes " + std::to_string(inputs.size()) + " inputs and gives " +
                          std::to_string(outputs.size()) + " outputs, not " +
                          std::to_string(given.size()) + " and " + std::to_string(n_outputs));
  }
  SmallArray<int64_t> sizes(static_cast<size_t>(n_symbols));  // 0: not seen yet; else size + 1.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PackageInput& input = inputs[i];
    const DLTensor& t = given[i];
    const auto refuse = [&](const std::string& what) {
      throw PluginError(HASTEN_INVALID_ARGUMENT, "input '" + input.name + "' is " + what);
    };
    if (dtype_text(t.dtype) != input.dtype) {
      refuse(input.dtype + ", not " + dtype_text(t.dtype));
    }
    if (static_cast<size_t>(t.ndim) != input.axes.size()) {
      refuse("of " + std::to_string(input.axes.size()) + " axes, not " + std::to_string(t.ndim));
    }
    for (size_t axis = 0; axis < input.axes.size(); ++axis) {
      const PackageAxis& spec = input.axes[axis];
      const int64_t size = t.shape[axis];
      if (!fits(spec, size)) {
        refuse(wanted(spec) + " at axis " + std::to_string(axis) + ", not " + std::to_string(size));
      }
      if (spec.symbol < 0) continue;
      int64_t& seen = sizes[static_cast<size_t>(spec.symbol)];
      if (seen != 0 && seen != size + 1) {
        refuse(std::to_string(seen - 1) + " at axis " + std::to_string(axis) +
               " as another input is, not " + std::to_string(size));
      }
      seen = size + 1;
    }
  }
}

std::string PackageInputs::missing_on(std::string_view flags) const {
  const std::vector<std::string_view> have = words_of(flags, ' ');
  for (const std::string& flag : cpu) {
    if (std::find(have.begin(), have.end(), flag) == have.end()) return flag;
  }
  return "";
}

std::string cpu_flags() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("flags")) return line;
  }
  return "";
}

}  // namespace hasten
