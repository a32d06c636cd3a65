// SPDX-License-Identifier: Apache-2.0
// The smallest complete plugin: it multiplies a float32 tensor. Copy this folder to
// start a backend; docs/adding_a_backend.md walks through it.
#include <hasten/plugin_tensor.hpp>

#include <filesystem>
#include <fstream>

namespace {

using hasten::Options;
using hasten::OwnedTensor;
using hasten::PluginError;

// A built model. One instance is one hasten_executable.
class TemplateExecutable final : public hasten::PluginExecutable {
 public:
  explicit TemplateExecutable(int factor) : factor_(factor) {}

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    hasten::check_inputs(kPorts, inputs, 1, outputs.size());
    OwnedTensor scratch;  // Holds a compact copy, when the input is strided.
    const auto* x = static_cast<const float*>(hasten::compact_data(inputs[0], scratch));
    OwnedTensor y = hasten::make_owned(inputs[0].dtype, hasten::shape_of(inputs[0]));
    auto* to = static_cast<float*>(hasten::data_of(y->dl_tensor));
    for (size_t i = 0; i < hasten::count_of(hasten::shape_of(inputs[0])); ++i) {
      to[i] = x[i] * static_cast<float>(factor_);
    }
    outputs[0] = std::move(y);
  }

  void save(const std::string& dir) override {
    std::ofstream file(std::filesystem::path(dir) / "factor");
    file << factor_ << '\n';
    if (!file.flush()) throw PluginError(HASTEN_INTERNAL, "cannot write into " + dir);
  }

  std::pair<size_t, size_t> arity() override { return {1, 1}; }

 private:
  // float32[?,?]: two axes of any size.
  inline static const std::vector<hasten::PortSpec> kPorts = {
      {.name = "x", .dtype = {kDLFloat, 32, 1}, .shape = {-1, -1}}};
  int factor_;
};

class TemplateBackend final : public hasten::PluginBackend {
 public:
  const hasten::Description& describe() override {
    static const hasten::Description description = {
        .title = "template: multiplies a float32 matrix",
        .formats = {"template"},
        .inspects = {"template"},
        .options = {{"factor", "int", "2", "what to multiply with"}},
    };
    return description;
  }

  // Ask your framework for its version here. If its library or device is not there, throw
  // PluginError(HASTEN_UNAVAILABLE, "what is missing\nhow to get it").
  std::string probe(const hasten_device&) override { return R"({"library_version":"1.0"})"; }

  std::string inspect(const hasten_model& model) override {
    if (std::string_view(model.format) != "template") return PluginBackend::inspect(model);
    return R"({"inputs":[{"name":"x","dtype":"float32","shape":["B","N"]}],)"
           R"("outputs":[{"name":"y","dtype":"float32","shape":["B","N"]}]})";
  }

  std::vector<hasten::ConfigProposal> candidates(const hasten_model& model,
                                                 const hasten_device&) override {
    if (std::string_view(model.format) != "template") return {};
    return {{"baseline", {}}, {"default", {{"factor", "2"}}}};
  }

  // Slow work belongs here: hasten calls it in a child process with limits. Options are
  // checked against describe() before.
  std::unique_ptr<hasten::PluginExecutable> build(const hasten_model& model, const hasten_device&,
                                                  const Options& options,
                                                  const std::string& /*work_dir*/) override {
    std::ifstream file(model.path);
    std::string first_line;
    if (!std::getline(file, first_line) || first_line != "hasten-model template") {
      throw PluginError(HASTEN_INVALID_ARGUMENT, std::string(model.path) + ": no template model");
    }
    return std::make_unique<TemplateExecutable>(options.integer("factor"));
  }

  std::unique_ptr<hasten::PluginExecutable> load(const std::string& dir,
                                                 const hasten_device&) override {
    std::ifstream file(std::filesystem::path(dir) / "factor");
    int factor = 0;
    if (!(file >> factor)) throw PluginError(HASTEN_INVALID_ARGUMENT, dir + " holds no factor");
    return std::make_unique<TemplateExecutable>(factor);
  }
};

}  // namespace

HASTEN_EXPORT_BACKEND(TemplateBackend, "template", "1.0", HASTEN_TRAIT_CONCURRENT_RUN)
