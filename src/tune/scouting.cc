// SPDX-License-Identifier: Apache-2.0
#include "tune/scouting.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "backend/worker.h"
#include "base/files.h"
#include "base/text.h"
#include "tune/parallel.h"

namespace hasten {
namespace {

bool lists(const Json& array, const std::string& word) {
  const Json::Array& items = array.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const Json& item) { return item.as_string() == word; });
}

const Json& option_named(const Json& describe, const std::string& name) {
  static const Json kNone;
  for (const Json& option : describe["options"].items()) {
    if (option["name"].as_string() == name) return option;
  }
  return kNone;
}

Status ask_about_model(Worker& worker, const Model& model, const ScoutOptions& options,
                       Scouted& found) {
  if (lists(found.describe["inspects"], model.format)) {
    Result<Json> json = worker.inspect(model.path, model.format, options.timeout);
    if (json) {
      found.signature = Signature::from_json(*json);
    } else {
      found.signature = Result<Signature>(json.error());
      if (!worker.alive()) return json.error();
    }
  }
  Result<Json> proposals = worker.candidates(model.path, model.format, options.timeout);
  if (!proposals) {
    found.unsupported = proposals.error();
    return {};
  }
  for (const Json& proposal : proposals->items()) {
    found.proposals.push_back({proposal["role"].as_string(),
                               Candidate::from_json(Json(found.entry.name), proposal["config"])});
  }
  return {};
}

// Nobody named it, and it says without being started that it neither reads nor runs such a model.
bool is_needless(const Scouted& backend, const Model* model, const ScoutOptions& options) {
  if (!model || options.wanted.empty() || backend.describe.is_null()) return false;
  return std::ranges::find(options.wanted, backend.entry.name) == options.wanted.end() &&
         !lists(backend.describe["inspects"], model->format) && !backend.takes(model->format);
}

Status look_around(Spawner& spawner, const Model* model, const ScoutOptions& options,
                   std::stop_token stop, Scouted& found) {
  if (is_needless(found, model, options)) {
    found.unsupported = Error{Code::kUnsupported, found.entry.name + ": not asked, nobody named it"};
    return {};
  }
  const std::filesystem::path folder = options.work_dir / ("scout-" + found.entry.name);
  HASTEN_TRY_STATUS(make_folder(folder));
  WorkerOptions worker_options;
  worker_options.backend = found.entry;
  worker_options.work_dir = folder;
  worker_options.threads = options.threads;
  worker_options.start_timeout = options.timeout;
  worker_options.stop = std::move(stop);
  HASTEN_TRY(Worker worker, Worker::start(spawner, std::move(worker_options)));
  if (found.describe.is_null()) {
    HASTEN_TRY(found.describe, worker.describe(options.timeout));
  }
  HASTEN_TRY(found.facts, worker.probe(options.timeout));
  if (model) HASTEN_TRY_STATUS(ask_about_model(worker, *model, options, found));
  return {};
}

// A program's description is in a file, so it may speak of an unavailable one too.
Scouted blank(const BackendEntry& entry) {
  Scouted found;
  found.entry = entry;
  found.describe = entry.describe;
  return found;
}

// How long a backend may take before that is worth a word, and at least how long one that
// nobody named is waited for. A framework on a cold disk takes seconds.
constexpr std::chrono::seconds kPatience{10};

// Waited for like a backend, whoever it is: one that reads the model and runs it as it is.
const std::string kOriginal = "(original)";

// Those who have not answered yet.
class Absent {
 public:
  explicit Absent(std::set<std::string> names) : names_(std::move(names)) {}
  void answered(const std::string& name) {
    std::lock_guard lock(mutex_);
    names_.erase(name);
    changed_.notify_all();
  }
  // Waits until none of `whom` is absent; false when the time is over.
  bool wait(const std::set<std::string>& whom, std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] {
      return std::ranges::none_of(names_, [&](const auto& name) { return whom.contains(name); });
    });
  }
  std::set<std::string> names() {
    std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> names_;
};

// Says who is slow, and ends the wait for those whom nobody asked for.
void watch(Absent& absent, std::set<std::string> all, const ScoutOptions& options,
           std::stop_source& enough) {
  if (absent.wait(all, kPatience)) return;
  std::set<std::string> slow = absent.names();
  slow.erase(kOriginal);
  if (options.slow) options.slow(join(std::vector(slow.begin(), slow.end()), ", "));
  if (options.wanted.empty()) return;
  std::set<std::string> needed(options.wanted.begin(), options.wanted.end());
  needed.insert(kOriginal);
  if (absent.wait(needed, options.timeout)) enough.request_stop();
}

bool is_count(const std::string& text) {
  int32_t number = 0;  // As the plugins read it.
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stop == end && number >= 0;
}

}  // namespace

std::string Scouted::library_version() const { return facts["library_version"].as_string(); }

std::vector<std::string> Scouted::formats() const {
  std::vector<std::string> formats;
  for (const Json& item : describe["formats"].items()) formats.push_back(item.as_string());
  return formats;
}

bool Scouted::takes(const std::string& format) const { return lists(describe["formats"], format); }

const Proposal* Scouted::with_role(std::string_view role) const {
  for (const Proposal& proposal : proposals) {
    if (proposal.role == role) return &proposal;
  }
  return nullptr;
}

std::map<std::string, std::string> Scouted::compile_options(const Candidate& candidate) const {
  std::map<std::string, std::string> options;
  for (const auto& [key, value] : candidate.config) {
    if (option_named(describe, key)["stage"].as_string() == "compile") options[key] = value;
  }
  return options;
}

Candidate Scouted::without_compile_options(const Candidate& candidate) const {
  Candidate rest = candidate;
  for (const auto& [key, value] : compile_options(candidate)) rest.config.erase(key);
  return rest;
}

Status Scouted::check_config(const Candidate& candidate) const {
  std::vector<std::string> known;
  for (const Json& option : describe["options"].items()) {
    known.push_back(option["name"].as_string());
  }
  for (const auto& [key, value] : candidate.config) {
    const Json& option = option_named(describe, key);
    if (option.is_null()) {
      const std::optional<std::string> meant = closest(key, known);
      return Error{Code::kInvalidArgument,
                   format("{}: unknown option '{}'; known options: {}", entry.name, key,
                          known.empty() ? "none" : join(known, ", ")),
                   meant ? format("did you mean {}:{}={}?", entry.name, *meant, value) : ""};
    }
    const std::string& type = option["type"].as_string();
    const auto refuse = [&](const std::string& wanted) {
      return Error{Code::kInvalidArgument,
                   format("{}: option '{}' wants {}, not '{}'", entry.name, key, wanted, value)};
    };
    if (type == "bool" && value != "true" && value != "false") return refuse("true or false");
    if (type == "enum" && !lists(option["choices"], value)) {
      std::vector<std::string> choices;
      for (const Json& choice : option["choices"].items()) choices.push_back(choice.as_string());
      return refuse("one of " + join(choices, ", "));
    }
    if (type == "int" && !is_count(value)) return refuse("a whole number of at least 0");
  }
  return {};
}

std::vector<Scouted> scout(Spawner& spawner, std::span<const BackendEntry> entries,
                           const Model* model, const ScoutOptions& options) {
  std::vector<Scouted> all;
  for (const BackendEntry& entry : entries) all.push_back(blank(entry));
  std::stop_source enough;
  const std::stop_callback forward(options.stop, [&] { enough.request_stop(); });
  std::set<std::string> names;
  for (const BackendEntry& entry : entries) names.insert(entry.name);
  std::set<std::string> expected = names;
  if (model) expected.insert(kOriginal);
  Absent absent(std::move(expected));
  const std::jthread watcher([&] { watch(absent, names, options, enough); });
  // All at once: they mostly wait for the disk and the loader.
  for_each_in_parallel(all.size(), all.size(), [&](size_t i) {
    Status done = look_around(spawner, model, options, enough.get_token(), all[i]);
    if (all[i].signature && *all[i].signature && all[i].with_role("baseline")) {
      absent.answered(kOriginal);
    }
    absent.answered(all[i].entry.name);
    if (!done) {
      all[i].unavailable = std::move(done).error();
      if (all[i].unavailable->code == Code::kCancelled && !options.stop.stop_requested()) {
        all[i].unavailable = Error{
            Code::kTimedOut, format("{}: no answer in {} s, and nobody named it",
                                    all[i].entry.name, kPatience.count())};
      }
      // A library that is missing says what to do; a plugin that is broken does not.
      if (all[i].unavailable->hint.empty()) {
        all[i].unavailable->hint = "rebuild or remove the plugin; `hasten plugin-test` tells more";
      }
    }
  });
  return all;
}

Result<const Scouted*> baseline_backend(std::span<const Scouted> scouted,
                                        const std::string& format) {
  std::vector<std::string> reasons;
  std::string hint = "hasten backends shows what is missing";
  for (const Scouted& backend : scouted) {
    if (backend.with_role("baseline")) return &backend;
    if (!backend.unavailable) continue;
    reasons.push_back(backend.entry.name + ": " + backend.unavailable->message);
    if (!backend.unavailable->hint.empty()) hint = backend.unavailable->hint;
  }
  return Error{Code::kUnavailable,
               hasten::format("nothing here runs {} models as they are{}{}", format,
                              reasons.empty() ? "" : "; ", join(reasons, "; ")),
               hint};
}

Result<Signature> signature_of(const Model& model, std::span<const Scouted> scouted) {
  std::vector<std::string> reasons;
  std::string hint;
  Code code = Code::kUnavailable;
  for (const Scouted& backend : scouted) {
    if (backend.signature && *backend.signature) return **backend.signature;
    if (backend.signature) {
      // The file was understood and refused: more telling than a missing library.
      code = backend.signature->error().code;
      reasons.insert(reasons.begin(),
                     backend.entry.name + ": " + backend.signature->error().message);
      hint = backend.signature->error().hint;
    } else if (backend.unavailable && lists(backend.describe["inspects"], model.format)) {
      reasons.push_back(backend.entry.name + ": " + backend.unavailable->message);
      if (hint.empty()) hint = backend.unavailable->hint;
    }
  }
  if (reasons.empty()) {
    return Error{
        Code::kUnavailable,
        format("{}: no backend here can read the format {}", model.path.string(), model.format),
        "hasten backends shows what is missing"};
  }
  return Error{code, format("{}: {}", model.path.string(), join(reasons, "; ")), hint};
}

}  // namespace hasten
