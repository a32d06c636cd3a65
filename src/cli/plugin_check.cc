// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/conformance.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/model.h"
#include "model/samples.h"
#include "tensor/npz.h"
#include "tune/scouting.h"

namespace hasten {
namespace {

Result<ConformanceModel> model_of(const PluginTestCommand& command, Spawner& spawner,
                                  const std::filesystem::path& folder) {
  HASTEN_TRY(const Model model, open_model(command.model));
  HASTEN_TRY(const Registry registry, Registry::scan(command.common.plugins));
  const std::vector<Scouted> scouted =
      scout(spawner, registry.entries(), &model, {.work_dir = folder, .threads = usable_cpus()});
  HASTEN_TRY(const Signature signature, signature_of(model, scouted));
  ConformanceModel conformance;
  conformance.path = model.path;
  conformance.format = model.format;
  for (const std::filesystem::path& file : command.inputs) {
    HASTEN_TRY(const NamedTensors arrays, read_npz(file));
    HASTEN_TRY(std::vector<Tensor> inputs, match_inputs(arrays, signature, file.string()));
    conformance.samples.push_back(std::move(inputs));
  }
  return conformance;
}

const char* word(const ConformanceResult& result) {
  return result.skipped ? "skipped" : result.passed ? "passed" : "FAILED";
}

}  // namespace

int run_plugin_test(const PluginTestCommand& command) {
  // The plugin itself comes first, so that it is the one of its name.
  CommonOptions common = command.common;
  common.plugins.insert(common.plugins.begin(), command.plugin);
  Result<Registry> registry = Registry::scan(common.plugins);
  if (!registry) return fail(registry.error());
  std::error_code ignored;
  const std::vector<BackendEntry>& entries = registry->entries();
  const std::string stem = command.plugin.stem().string();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const BackendEntry& e) {
    return "hasten_" + e.name == stem ||
           std::filesystem::equivalent(e.library, command.plugin, ignored);
  });
  if (entry == entries.end()) {
    return fail({Code::kInvalidArgument, format("{} is no plugin", command.plugin.string()),
                 "a plugin is called hasten_NAME.so or hasten_NAME.json"});
  }
  Result<TemporaryFolder> folder = TemporaryFolder::create("plugin-test");
  if (!folder) return fail(folder.error());
  Spawner spawner;
  std::vector<ConformanceModel> models;
  if (!command.model.empty()) {
    PluginTestCommand with_plugin = command;
    with_plugin.common = common;
    Result<ConformanceModel> model = model_of(with_plugin, spawner, folder->path());
    if (!model) return fail(model.error());
    models.push_back(std::move(*model));
  }
  const bool show = command.common.json != "-";
  ConformanceOptions options;
  options.work_dir = folder->path();
  options.threads = usable_cpus();
  options.after_check = [show](const ConformanceResult& result) {
    if (show) print(format("{:<8} {:<44} {}", word(result), result.name, result.detail));
  };
  const std::vector<ConformanceResult> results = run_conformance(spawner, *entry, models, options);
  bool passed = true;
  Json checks = Json::array();
  for (const ConformanceResult& result : results) {
    passed = passed && (result.passed || result.skipped);
    checks.push(Json::object({{"name", result.name},
                              {"passed", result.passed},
                              {"skipped", result.skipped},
                              {"detail", result.detail}}));
  }
  const Json json = Json::object({{"schema", 1},
                                  {"hasten", kVersion},
                                  {"plugin", command.plugin.string()},
                                  {"passed", passed},
                                  {"checks", std::move(checks)}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  return passed ? kExitDone : kExitNothingUsable;
}

}  // namespace hasten
