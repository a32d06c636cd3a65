// SPDX-License-Identifier: Apache-2.0
// AOTInductor packages by libtorch's package loader; no Python at run time. The one
// translation unit of this plugin that sees torch.

// Before torch, which declares a std::quoted that plugin.hpp would find.
#include <hasten/plugin.hpp>

#include <ATen/Parallel.h>
#include <ATen/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/headeronly/version.h>

#include <hasten/plugin_options_file.hpp>
#include <hasten/plugin_torch.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "package_inputs.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "inductor";
constexpr char kFormat[] = "aoti";
constexpr char kPackage[] = "model.pt2";
constexpr char kInputs[] = ".inputs";  // Appended to the package's name.

using Loader = torch::inductor::AOTIModelPackageLoader;

class InductorExecutable : public PluginExecutable {
 public:
  InductorExecutable(std::string path, const Options& options, int device_threads)
      : path_(std::move(path)),
        inputs_(PackageInputs::read(path_ + kInputs)),
        options_(options),
        threads_(options.integer("threads") ? options.integer("threads") : device_threads) {
    const std::string flags = cpu_flags();
    if (const std::string flag = inputs_.missing_on(flags); !flags.empty() && !flag.empty()) {
      throw PluginError(HASTEN_UNAVAILABLE, path_ + ": was compiled for a CPU with " + flag +
                                                ", which this machine lacks\ntune on this machine");
    }
    use_threads(threads_);
    with_torch(HASTEN_INVALID_ARGUMENT, path_ + " is no AOTInductor package that loads here", [&] {
      loader_ = std::make_unique<Loader>(path_);
      for (const auto& [name, tensor] : loader_->get_runner()->extract_constants_map(false)) {
        if (tensor.has_storage() && tensor.numel() > 0) constants_.push_back(tensor);
      }
    });
  }

  std::pair<size_t, size_t> arity() override {
    return {inputs_.inputs.size(), inputs_.outputs.size()};
  }

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    inputs_.check(inputs, outputs.size());
    use_threads(threads_);
    with_torch(HASTEN_RUN_FAILED, kName, [&] {
      const c10::InferenceMode inference;
      std::vector<at::Tensor> tensors;
      tensors.reserve(inputs.size());
      // The code was generated for compact tensors and looks at no strides.
      for (const DLTensor& input : inputs) tensors.push_back(borrow(input).contiguous());
      std::vector<at::Tensor> results = loader_->get_runner()->run(tensors);
      if (results.size() != outputs.size()) {
        throw PluginError(HASTEN_RUN_FAILED, path_ + ": gave " + std::to_string(results.size()) +
                                                 " outputs, not " + std::to_string(outputs.size()));
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        // A result may be a view of an input or of a weight, neither of which lives as long.
        const bool borrowed = lies_in(results[i], inputs) || lies_in_constant(results[i]);
        outputs[i] = hand_over(borrowed ? results[i].clone() : std::move(results[i]));
      }
    });
  }

  void save(const std::string& dir) override {
    for (const std::string suffix : {"", kInputs}) {
      const fs::path to = fs::path(dir) / (kPackage + suffix);
      std::error_code failure;
      fs::copy_file(path_ + suffix, to, fs::copy_options::overwrite_existing, failure);
      if (failure) {
        plugin_detail::refuse_file(
            to, "cannot be copied from " + path_ + suffix + ": " + failure.message());
      }
    }
    save_options(dir, options_);
  }

 private:
  bool lies_in_constant(const at::Tensor& tensor) const {
    if (tensor.numel() == 0) return false;
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    for (const at::Tensor& constant : constants_) {
      const auto* begin = static_cast<const std::byte*>(constant.const_data_ptr());
      if (data >= begin && data < begin + constant.nbytes()) return true;
    }
    return false;
  }

  std::string path_;
  PackageInputs inputs_;
  Options options_;
  int threads_;
  std::unique_ptr<Loader> loader_;
  std::vector<at::Tensor> constants_;  // Views of the loader's own; behind it, so gone first.
};

class InductorBackend : public PluginBackend {
 public:
  const Description& describe() override {
    static const Description description = {
        .title = "AOTInductor, compiled to machine code",
        .formats = {kFormat},
        .inspects = {},
        .options = {{.name = "threads",
                     .type = "int",
                     .default_value = "0",
                     .help = "threads of one call; 0: what the process may use"},
                    {.name = "freezing",
                     .type = "bool",
                     .default_value = "false",
                     .help = "fold and repack the weights when compiling",
                     .stage = "compile"},
                    {.name = "max_autotune",
                     .type = "bool",
                     .default_value = "false",
                     .help = "try several kernels for each matrix product when compiling",
                     .stage = "compile"},
                    {.name = "quantization",
                     .type = "enum",
                     .default_value = "none",
                     .help = "8-bit linear layers by TorchAO: weights only, or activations too; "
                             "lossy",
                     .choices = {"none", "int8wo", "int8dq"},
                     .stage = "compile"}}};
    return description;
  }

  std::string probe(const hasten_device&) override {
    return "{\"library_version\":" + plugin_detail::quoted(TORCH_VERSION) + "}";
  }

  std::vector<ConfigProposal> candidates(const hasten_model& model, const hasten_device&) override {
    const std::string_view format = model.format;
    if (format != "pt2" && format != "torchscript" && format != kFormat) return {};
    return {{"default", {}},
            {"default", {{"freezing", "true"}}},
            {"lossy", {{"quantization", "int8wo"}}},
            {"lossy", {{"quantization", "int8dq"}}},
            {"extra", {{"threads", "1"}}},
            {"extra", {{"freezing", "true"}, {"max_autotune", "true"}}}};
  }

  std::unique_ptr<PluginExecutable> build(const hasten_model& model, const hasten_device& device,
                                          const Options& options, const std::string&) override {
    if (std::string_view(model.format) != kFormat) {
      throw PluginError(HASTEN_UNSUPPORTED,
                        std::string("takes an AOTInductor package, not ") + model.format);
    }
    return std::make_unique<InductorExecutable>(model.path, options, device.threads);
  }

  std::unique_ptr<PluginExecutable> load(const std::string& dir,
                                         const hasten_device& device) override {
    const Options options = load_options(dir, describe().options, kName);
    return std::make_unique<InductorExecutable>(fs::path(dir) / kPackage, options, device.threads);
  }
};

}  // namespace
}  // namespace hasten

HASTEN_EXPORT_BACKEND(hasten::InductorBackend, "inductor", "0.1.0", HASTEN_TRAIT_CONCURRENT_RUN)
