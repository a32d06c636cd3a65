// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <system_error>

#include "base/files.h"
#include "base/text.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hasten_";

// "hasten_NAME.so" -> "NAME"; empty for any other file.
std::string name_of(const fs::path& file) {
  const std::string stem = file.stem().string(), extension = file.extension().string();
  if ((extension != ".so" && extension != ".json") || !stem.starts_with(kPrefix)) return "";
  return stem.substr(kPrefix.size());
}

Result<BackendEntry> program_entry(const fs::path& file, const std::string& name) {
  HASTEN_TRY(const std::string text, read_file(file));
  HASTEN_TRY(const Json json, Json::parse(text));
  if (json["name"].as_string() != name) {
    return Error{Code::kInvalidArgument,
                 format("it calls itself '{}', not '{}'", json["name"].as_string(), name)};
  }
  BackendEntry entry{.name = name, .library = {}, .command = {}, .describe = json["describe"]};
  for (const Json& word : json["command"].items()) entry.command.push_back(word.as_string());
  if (entry.command.empty()) return Error{Code::kInvalidArgument, "it has no command"};
  return entry;
}

// A broken descriptor stays in the list: whoever uses it is told why it cannot work.
BackendEntry entry_of(const fs::path& file, const std::string& name) {
  const auto broken = [&](std::string why) {
    return BackendEntry{.name = name,
                        .library = {},
                        .command = {},
                        .describe = Json::object({{"error", std::move(why)}})};
  };
  if (const Status is_file = check_is_file(file); !is_file) {
    return broken(is_file.error().message);
  }
  if (file.extension() == ".so") {
    return {.name = name, .library = fs::absolute(file), .command = {}, .describe = {}};
  }
  auto entry = program_entry(file, name);
  if (entry) return *std::move(entry);
  return broken(format("{}: {}", file.string(), entry.error().message));
}

using Found = std::map<std::string, BackendEntry>;  // The first of a name stays.

void scan_folder(const fs::path& folder, Found& found) {
  std::error_code ignored;  // A folder that cannot be read has no backends.
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = name_of(file);
    if (!name.empty() && !found.contains(name)) found.emplace(name, entry_of(file, name));
  }
}

Status scan_given(const fs::path& path, Found& found) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Error{Code::kInvalidArgument, format("plugin {}: no such file or folder", path.string()),
                 "give a file hasten_NAME.so or a folder of them"};
  }
  if (fs::is_directory(status)) {
    scan_folder(path, found);
    return {};
  }
  HASTEN_TRY_STATUS(check_is_file(path));
  const std::string name = name_of(path);
  if (name.empty()) {
    return Error{Code::kInvalidArgument,
                 format("plugin {}: its name is not of the form hasten_NAME.so", path.string()),
                 "the name of a backend is taken from the name of its file"};
  }
  found.emplace(name, entry_of(path, name));
  return {};
}

std::vector<fs::path> usual_folders() {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("HASTEN_PLUGIN_PATH")) {
    for (const std::string& folder : split(path, ':')) {
      if (!folder.empty()) folders.emplace_back(folder);
    }
  }
  const fs::path beside = own_binary().parent_path();
  folders.push_back(beside / "plugins");             // A build folder.
  folders.push_back(beside / "hasten" / "plugins");  // libhasten.so in <prefix>/lib.
  folders.push_back(beside.parent_path() / HASTEN_LIBDIR / "hasten" / "plugins");  // In bin/.
  return folders;
}

fs::path& preferred_python() {
  static fs::path python;
  return python;
}

bool is_executable(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

std::optional<fs::path> in_search_path(std::string_view program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':')) {
    const fs::path file = fs::path(folder) / program;
    if (!folder.empty() && is_executable(file)) return file;
  }
  return std::nullopt;
}

}  // namespace

Result<Registry> Registry::scan(const std::vector<fs::path>& first) {
  Found found;
  for (const fs::path& path : first) HASTEN_TRY_STATUS(scan_given(path, found));
  for (const fs::path& folder : usual_folders()) scan_folder(folder, found);
  Registry registry;
  for (auto& [name, entry] : found) registry.entries_.push_back(std::move(entry));
  return registry;
}

Result<BackendEntry> Registry::find(const std::string& name) const {
  std::vector<std::string> known;
  for (const BackendEntry& entry : entries_) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  const auto near = closest(name, known);
  return Error{
      Code::kInvalidArgument,
      format("unknown backend '{}'; known: {}", name, known.empty() ? "none" : join(known, ", ")),
      near ? format("did you mean '{}'?", *near)
           : "`hasten backends` lists them; HASTEN_PLUGIN_PATH names further folders"};
}

Result<fs::path> find_python() {
  const char* given = std::getenv("HASTEN_PYTHON");
  if (given && *given) {
    if (is_executable(given)) return fs::path(given);
    return Error{Code::kUnavailable, format("HASTEN_PYTHON is {}, which cannot be run", given),
                 "set it to a Python interpreter, or unset it"};
  }
  if (is_executable(preferred_python())) return preferred_python();
  const fs::path recorded = HASTEN_PYTHON_DEFAULT;
  if (!recorded.empty() && is_executable(recorded)) return recorded;
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment) {
    const fs::path python = fs::path(environment) / "bin" / "python";
    if (is_executable(python)) return python;
  }
  if (auto python = in_search_path("python3")) return *python;
  return Error{Code::kUnavailable, "no Python interpreter was found",
               "install python3, or set HASTEN_PYTHON to one that has PyTorch"};
}

void prefer_python(fs::path python) { preferred_python() = std::move(python); }

fs::path python_package_folder() {
  if (const char* given = std::getenv("HASTEN_PYTHON_PACKAGES"); given && *given) return given;
  std::error_code ignored;
  const fs::path source = HASTEN_SOURCE_PYTHON;
  if (!source.empty() && fs::exists(source / "hasten", ignored)) return source;
  const fs::path beside = own_binary().parent_path();
  if (fs::exists(beside / "worker.py", ignored)) return beside.parent_path();  // In a wheel.
  const fs::path library = beside / "hasten" / "python";  // libhasten.so in <prefix>/lib.
  if (fs::exists(library, ignored)) return library;
  return beside.parent_path() / HASTEN_LIBDIR / "hasten" / "python";
}

}  // namespace hasten
