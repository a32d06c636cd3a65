// SPDX-License-Identifier: Apache-2.0
// The settings of a build as a file of its payload: options.txt, one NAME=VALUE a line.
// Header-only and no part of the ABI.
#pragma once

#include <hasten/plugin.hpp>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {

inline constexpr std::string_view kOptionsFile = "options.txt";

namespace plugin_detail {

[[noreturn]] inline void refuse_file(const std::filesystem::path& file, const std::string& what) {
  throw PluginError(HASTEN_INVALID_ARGUMENT, file.string() + ": " + what);
}

}  // namespace plugin_detail

inline void save_options(const std::filesystem::path& dir, const Options& options) {
  std::ofstream out(dir / kOptionsFile);
  for (const auto& [key, value] : options.values()) out << key << '=' << value << '\n';
  if (!out.flush()) plugin_detail::refuse_file(dir / kOptionsFile, "cannot be written");
}

// Throws HASTEN_INVALID_ARGUMENT with the name of the file, or of the option that is wrong.
inline Options load_options(const std::filesystem::path& dir, std::span<const OptionSpec> known,
                            std::string_view backend) {
  std::ifstream in(dir / kOptionsFile);
  if (!in) plugin_detail::refuse_file(dir / kOptionsFile, "cannot be read");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string line; std::getline(in, line);) {
    const size_t equals = line.find('=');
    if (equals == line.npos) {
      plugin_detail::refuse_file(dir / kOptionsFile, "has a line without '='");
    }
    // An empty value stands for a setting that was not made.
    if (equals + 1 < line.size()) {
      pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  std::vector<hasten_option> given;
  for (const auto& [key, value] : pairs) given.push_back({key.c_str(), value.c_str()});
  return Options(known, given, backend);
}

}  // namespace hasten
