// SPDX-License-Identifier: Apache-2.0
// What a plugin that takes ONNX files saves and loads: the model, its weight files and
// the options, never the engine's own compiled form, which suits one machine only.
// Header-only and no part of the ABI.
#pragma once

#include <hasten/plugin_onnx.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hasten {

// A model file as it was when it was read, so that what is saved is what was built.
class OnnxSource {
 public:
  explicit OnnxSource(const std::string& path) : path_(path), file_(read_onnx(path)) {
    stamps_ = stamps();
  }
  const std::string& path() const { return path_; }
  const OnnxFile& file() const { return file_; }

  // Copies the model to dir/model.onnx, its weight files under their own names, the
  // options to dir/options.txt.
  void save(const std::filesystem::path& dir, const Options& options) const {
    namespace fs = std::filesystem;
    if (stamps() != stamps_) {
      throw PluginError(HASTEN_INVALID_ARGUMENT,
                        path_ + ": the model was changed after it was built");
    }
    copy(path_, dir / kModel);
    for (const std::string& location : file_.external) {
      const fs::path relative = fs::path(location).lexically_normal();
      if (relative == kModel || relative == kOptions) {
        throw PluginError(HASTEN_UNSUPPORTED, path_ + ": its weight file may not be called '" +
                                                  location + "'; rename it");
      }
      std::error_code failure;
      fs::create_directories(folder_of(dir / relative), failure);
      copy(folder_of(path_) / relative, dir / relative);
    }
    std::ofstream out(dir / kOptions);
    for (const auto& [key, value] : options.values()) out << key << '=' << value << '\n';
    if (!out.flush()) fail(dir / kOptions, "cannot be written");
  }
  static std::string model_in(const std::filesystem::path& dir) { return dir / kModel; }
  static Options options_in(const std::filesystem::path& dir, std::span<const OptionSpec> known,
                            std::string_view backend) {
    std::ifstream in(dir / kOptions);
    if (!in) fail(dir / kOptions, "cannot be read");
    std::vector<std::pair<std::string, std::string>> pairs;
    for (std::string line; std::getline(in, line);) {
      const size_t equals = line.find('=');
      if (equals == line.npos) fail(dir / kOptions, "has a line without '='");
      // An empty value stands for a setting that was not made.
      if (equals + 1 < line.size()) {
        pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
      }
    }
    std::vector<hasten_option> given;
    for (const auto& [key, value] : pairs) given.push_back({key.c_str(), value.c_str()});
    return Options(known, given, backend);
  }

 private:
  static constexpr std::string_view kModel = "model.onnx";
  static constexpr std::string_view kOptions = "options.txt";

  static std::filesystem::path folder_of(const std::filesystem::path& file) {
    return plugin_detail::folder_of(file);
  }
  [[noreturn]] static void fail(const std::filesystem::path& file, const std::string& what) {
    throw PluginError(HASTEN_INVALID_ARGUMENT, file.string() + ": " + what);
  }
  static void copy(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::error_code failure;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing,
                               failure);
    if (failure) fail(to, "cannot be copied from " + from.string() + ": " + failure.message());
  }
  // Size and time of change of each file; what cannot be read counts as 0.
  std::vector<std::pair<uintmax_t, int64_t>> stamps() const {
    std::vector<std::pair<uintmax_t, int64_t>> out;
    const auto add = [&](const std::filesystem::path& file) {
      std::error_code e;
      const auto time = std::filesystem::last_write_time(file, e).time_since_epoch().count();
      out.emplace_back(std::filesystem::file_size(file, e), time);
    };
    add(path_);
    for (const std::string& location : file_.external) add(folder_of(path_) / location);
    return out;
  }

  std::string path_;
  OnnxFile file_;
  std::vector<std::pair<uintmax_t, int64_t>> stamps_;
};

}  // namespace hasten
