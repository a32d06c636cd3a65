// SPDX-License-Identifier: Apache-2.0
#include "backend/compilers.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <system_error>

#include "backend/registry.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "model/model.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackageHint =
    "set HASTEN_PYTHON_PACKAGES to the folder of hasten's Python package";

Result<CompilerEntry> entry_from(const Json& json) {
  CompilerEntry entry{.name = json["name"].as_string(),
                      .from = json["from"].as_string(),
                      .to = json["to"].as_string(),
                      .module = json["module"].as_string(),
                      .cost = json["cost"].as_double(1)};
  if (entry.name.empty() || entry.from.empty() || entry.to.empty() || entry.module.empty()) {
    return Error{Code::kInternal, "an entry lacks name, from, to or module"};
  }
  if (!(entry.cost > 0)) return Error{Code::kInternal, entry.name + ": a cost is above 0"};
  return entry;
}

Json request_json(const CompileRequest& request, const fs::path& output_dir) {
  Json options = Json::object();
  for (const auto& [key, value] : request.options) options.set(key, value);
  const fs::path samples = request.samples.empty() ? fs::path() : fs::absolute(request.samples);
  return Json::object({{"model", fs::absolute(request.model).string()},
                       {"format", request.format},
                       {"graph", request.graph},
                       {"samples", samples.string()},
                       {"options", std::move(options)},
                       {"output_dir", output_dir.string()}});
}

// What the compiler itself says; none: it came to say nothing.
std::optional<Json> read_result(const fs::path& file) {
  auto text = read_file(file);
  if (!text) return std::nullopt;
  auto json = Json::parse(*text);
  if (!json || !json->is_object()) return std::nullopt;
  return *std::move(json);
}

Error with_log(Error error, const fs::path& log) {
  const std::string where = format("its log is {}", log.string());
  error.hint = error.hint.empty() ? where : format("{}; {}", error.hint, where);
  return error;
}

}  // namespace

Result<Compilers> Compilers::read(const fs::path& package_folder) {
  Compilers compilers;
  compilers.package_folder_ = package_folder;
  const fs::path file = package_folder / "hasten" / "compilers" / "compilers.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    // Models that need no conversion are tuned without the Python package.
    compilers.missing_ = format("{} does not exist", file.string());
    return compilers;
  }
  HASTEN_TRY(const std::string text, read_file(file));
  auto json = Json::parse(text);
  if (!json) return std::move(json).error().within(file.string());
  for (const Json& item : json->items()) {
    auto entry = entry_from(item);
    if (!entry) return std::move(entry).error().within(file.string());
    compilers.entries_.push_back(*std::move(entry));
  }
  return compilers;
}

Result<std::vector<CompilerEntry>> Compilers::chain(const std::string& from,
                                                    const std::string& to) const {
  struct Reached {
    double cost = std::numeric_limits<double>::infinity();
    const CompilerEntry* by = nullptr;
  };
  std::map<std::string, Reached> reached = {{from, {0, nullptr}}};
  std::set<std::string> settled;
  for (;;) {
    // Dijkstra without a queue: there is a handful of formats.
    const std::string* nearest = nullptr;
    for (const auto& [name, state] : reached) {
      if (!settled.contains(name) && (!nearest || state.cost < reached[*nearest].cost)) {
        nearest = &name;
      }
    }
    if (!nearest || *nearest == to) break;
    settled.insert(*nearest);
    for (const CompilerEntry& entry : entries_) {
      const double cost = reached[*nearest].cost + entry.cost;
      if (entry.from == *nearest && cost < reached[entry.to].cost)
        reached[entry.to] = {cost, &entry};
    }
  }
  if (!reached.contains(to)) {
    return Error{
        Code::kUnsupported,
        format("nothing turns '{}' into '{}'{}", from, to, missing_.empty() ? "" : ": " + missing_),
        missing_.empty() ? ""
                         : kPackageHint};
  }
  std::vector<CompilerEntry> steps;
  for (const CompilerEntry* step = reached[to].by; step; step = reached[step->from].by) {
    steps.push_back(*step);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

Result<std::string> Compilers::reachable(const std::string& from,
                                         const std::vector<std::string>& formats) const {
  // Native first: nothing is faster to make than what is there.
  if (std::find(formats.begin(), formats.end(), from) != formats.end()) return from;
  for (const std::string& to : formats) {
    if (chain(from, to)) return to;
  }
  return Error{missing_.empty() ? Code::kUnsupported : Code::kUnavailable,
               format("it takes {}, and this model is {}{}", taken(formats), format_title(from),
                      missing_.empty() ? "" : ": " + missing_),
               missing_.empty() ? "name one that takes it; hasten backends shows what each takes"
                                : kPackageHint};
}

std::string Compilers::taken(const std::vector<std::string>& formats) const {
  std::vector<std::string> as_they_are, converted;
  for (const std::string& to : formats) as_they_are.push_back(format_title(to));
  std::set<std::string> sources;
  for (const CompilerEntry& entry : entries_) {
    const auto is_source_of = [&](const std::string& to) {
      return chain(entry.from, to).has_value();
    };
    const bool is_taken = std::find(formats.begin(), formats.end(), entry.from) != formats.end();
    if (!is_taken && std::any_of(formats.begin(), formats.end(), is_source_of) &&
        sources.insert(entry.from).second) {
      converted.push_back(format_title(entry.from));
    }
  }
  return join(as_they_are, ", ") +
         (converted.empty() ? "" : format(" (also converted from {})", join(converted, ", ")));
}

Result<CompileResult> Compilers::run(Spawner& spawner, const CompilerEntry& compiler,
                                     const CompileRequest& request, const RunLimits& limits) const {
  HASTEN_TRY(const fs::path python, find_python());
  const fs::path work_dir = fs::absolute(request.work_dir), output_dir = work_dir / compiler.name;
  const fs::path log = work_dir / (compiler.name + ".log");
  const fs::path request_file = work_dir / (compiler.name + ".request.json");
  const fs::path result_file = output_dir / "result.json";
  HASTEN_TRY_STATUS(make_folder(output_dir));
  std::error_code ignored;
  fs::remove(result_file, ignored);  // Of an earlier attempt.
  HASTEN_TRY_STATUS(write_file_atomically(request_file, request_json(request, output_dir).dump(2)));

  const char* path = std::getenv("PYTHONPATH");
  const std::string packages =
      fs::absolute(package_folder_).string() + (path && *path ? std::string(":") + path : "");
  const std::chrono::nanoseconds start = real_clock().now();
  Status status =
      spawner.run({.command = {python.string(), "-m", "hasten.compilers." + compiler.module,
                               request_file.string()},
                   .environment = {{"PYTHONPATH", packages}},
                   .folder = output_dir,
                   .log = log,
                   .inherited = {},
                   .supervised = true},
                  limits);
  const std::chrono::duration<double> seconds = real_clock().now() - start;

  const std::optional<Json> result = read_result(result_file);
  if (result && !(*result)["ok"].as_bool() && result->contains("message")) {
    return with_log({code_from_string((*result)["code"].as_string()),
                     format("{}: {}", compiler.name, (*result)["message"].as_string()),
                     (*result)["hint"].as_string()},
                    log);
  }
  if (!status) return with_log(std::move(status).error().within(compiler.name), log);
  const fs::path made = result ? (*result)["path"].as_string() : std::string();
  if (made.empty() || !fs::exists(output_dir / made, ignored)) {
    return with_log({Code::kBuildFailed, format("{}: it ended without a result", compiler.name)},
                    log);
  }
  return CompileResult{output_dir / made, (*result)["facts"], seconds.count()};
}

}  // namespace hasten
