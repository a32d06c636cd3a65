// SPDX-License-Identifier: Apache-2.0
// What a plugin that takes ONNX files builds from, saves and loads: the model, its weight files
// and the options, never the engine's own compiled form, which suits one machine only.
// Header-only and no part of the ABI.
#pragma once

#include <hasten/plugin_onnx.hpp>
#include <hasten/plugin_options_file.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
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
  const OnnxDeclaration& file() const { return file_; }

  // Copies the model to dir/model.onnx and its weight files under their own names; the options
  // go beside them.
  void save(const std::filesystem::path& dir, const Options& options) const {
    namespace fs = std::filesystem;
    if (stamps() != stamps_) {
      throw PluginError(HASTEN_INVALID_ARGUMENT,
                        path_ + ": the model was changed after it was built");
    }
    copy(path_, dir / kModel);
    for (const std::string& location : file_.external) {
      const fs::path relative = fs::path(location).lexically_normal();
      if (relative == kModel || relative == kOptionsFile) {
        throw PluginError(HASTEN_UNSUPPORTED, path_ + ": its weight file may not be called '" +
                                                  location + "'; rename it");
      }
      std::error_code failure;
      fs::create_directories(folder_of(dir / relative), failure);
      copy(folder_of(path_) / relative, dir / relative);
    }
    save_options(dir, options);
  }
  static std::string model_in(const std::filesystem::path& dir) { return dir / kModel; }

 private:
  static constexpr std::string_view kModel = "model.onnx";

  static std::filesystem::path folder_of(const std::filesystem::path& file) {
    return plugin_detail::folder_of(file);
  }
  static void copy(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::error_code failure;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing,
                               failure);
    if (failure) {
      const std::string why = ": " + failure.message();
      plugin_detail::refuse_file(to, "cannot be copied from " + from.string() + why);
    }
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
  OnnxDeclaration file_;
  std::vector<std::pair<uintmax_t, int64_t>> stamps_;
};

// What backends for ONNX files do alike. E is the executable, made of a path, the options and the
// threads of the device.
template <class E>
class OnnxBackend : public PluginBackend {
 public:
  explicit OnnxBackend(std::string_view name) : name_(name) {}

  // From the file alone: no weights are read, and a model whose operators the engine lacks
  // still has a signature.
  std::string inspect(const hasten_model& model) override {
    if (std::string_view(model.format) != "onnx") return PluginBackend::inspect(model);
    return onnx_signature(read_onnx(model.path), model.path);
  }

  std::unique_ptr<PluginExecutable> build(const hasten_model& model, const hasten_device& device,
                                          const Options& options, const std::string&) override {
    if (std::string_view(model.format) != "onnx") {
      throw PluginError(HASTEN_UNSUPPORTED,
                        "takes the format onnx, not " + std::string(model.format));
    }
    return std::make_unique<E>(model.path, options, device.threads);
  }

  std::unique_ptr<PluginExecutable> load(const std::string& dir,
                                         const hasten_device& device) override {
    const Options options = load_options(dir, describe().options, name_);
    return std::make_unique<E>(OnnxSource::model_in(dir), options, device.threads);
  }

 protected:
  static void expect_cpu(const hasten_device& device) {
    if (device.device.device_type == kDLCPU) return;
    throw PluginError(HASTEN_UNAVAILABLE, "runs on a CPU only\nleave the device at its default");
  }

 private:
  std::string name_;
};

}  // namespace hasten
