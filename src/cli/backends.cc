// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "backend/compilers.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "tune/scouting.h"

namespace hasten {
namespace {

std::string joined(const Json& array) {
  std::vector<std::string> words;
  for (const Json& item : array.items()) words.push_back(item.as_string());
  return join(words, ", ");
}

Json to_json(const Scouted& backend) {
  Json json = Json::object({{"name", backend.entry.name}, {"available", !backend.unavailable}});
  json.set("title", backend.describe["title"]);
  json.set("library_version", backend.facts["library_version"]);
  json.set("formats", backend.describe.is_null() ? Json::array() : backend.describe["formats"]);
  json.set("options", backend.describe.is_null() ? Json::array() : backend.describe["options"]);
  json.set("facts", backend.facts);
  json.set("reason", backend.unavailable ? Json(backend.unavailable->message) : Json());
  json.set("remedy", backend.unavailable ? Json(backend.unavailable->hint) : Json());
  json.set("plugin", backend.entry.library.empty() ? Json(join(backend.entry.command, " "))
                                                   : Json(backend.entry.library.string()));
  return json;
}

std::string describe_option(const Json& option) {
  std::string text = format("      {}={}", option["name"].as_string(),
                            option["type"].as_string() == "enum" ? joined(option["choices"])
                                                                 : option["type"].as_string());
  const std::string& otherwise = option["default"].as_string();
  if (!otherwise.empty()) text += format(" (default {})", otherwise);
  return format("{:<56} {}\n", text, option["help"].as_string());
}

std::string to_text(const std::vector<Scouted>& all, const Compilers& compilers) {
  std::string text;
  for (const Scouted& backend : all) {
    if (backend.unavailable) continue;
    text += format("{:<14} available    {} {}; takes {}\n", backend.entry.name,
                   backend.describe["title"].as_string(), backend.library_version(),
                   compilers.taken(backend.formats()));
    for (const Json& option : backend.describe["options"].items()) text += describe_option(option);
  }
  for (const Scouted& backend : all) {
    if (!backend.unavailable) continue;
    text += format("{:<14} unavailable  {}\n", backend.entry.name, backend.unavailable->message);
    if (!backend.unavailable->hint.empty()) {
      text += format("{:<14} remedy       {}\n", "", backend.unavailable->hint);
    }
  }
  return text;
}

}  // namespace

int run_backends(const BackendsCommand& command) {
  Result<Registry> registry = Registry::scan(command.common.plugins);
  if (!registry) return fail(registry.error());
  Result<TemporaryFolder> folder = TemporaryFolder::create("backends");
  if (!folder) return fail(folder.error());
  Spawner spawner;
  const std::vector<Scouted> all = scout(spawner, registry->entries(), nullptr,
                                         {.work_dir = folder->path(), .threads = usable_cpus(), .slow = print_waiting});
  if (all.empty()) {
    return fail({Code::kUnavailable, "no plugin was found",
                 "make setup builds them; --plugin PATH or HASTEN_PLUGIN_PATH names others"});
  }
  if (!command.common.json.empty()) {
    Json list = Json::array();
    for (const Scouted& backend : all) list.push(to_json(backend));
    const Json json =
        Json::object({{"schema", 1}, {"hasten", kVersion}, {"backends", std::move(list)}});
    if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  }
  // Without the means to convert each takes what it takes as it is.
  const Result<Compilers> compilers = Compilers::read(python_package_folder());
  if (command.common.json != "-") print(to_text(all, compilers ? *compilers : Compilers()));
  return kExitDone;
}

}  // namespace hasten
