// SPDX-License-Identifier: Apache-2.0
#include "backend/conformance.h"

#include <optional>
#include <system_error>

#include "backend/worker.h"
#include "base/files.h"
#include "base/text.h"
#include "model/signature.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  bool passed = true, skipped = false;
  std::string detail;
};

Outcome skip(std::string why) {
  return {.passed = false, .skipped = true, .detail = std::move(why)};
}
Outcome fail(std::string why) {
  return {.passed = false, .skipped = false, .detail = std::move(why)};
}

// What each of the checks inside the worker is called in a report.
struct NamedCheck {
  const char* name;
  const char* title;
};
constexpr NamedCheck kOfPlugin[] = {{"table", "name, version and traits"},
                                    {"foreign_abi", "another ABI is refused"},
                                    {"destroy_null", "destroy(NULL)"},
                                    {"utf8", "messages are UTF-8, and never empty"}};
constexpr NamedCheck kOfOptions[] = {{"unknown_option", "an unknown option is refused"},
                                     {"bad_values", "a bad value is refused"}};
constexpr NamedCheck kOfModel[] = {
    {"outputs", "outputs are its own, with strides; inputs are only read"},
    {"repeat", "two calls agree, and the first result stays"},
    {"save_load", "save, load, run: the same bits"},
    {"wrong_arguments", "wrong count, dtype and rank are refused"},
    {"layouts", "transposed, strided and offset inputs"},
    {"empty", "empty inputs"},
    {"concurrent", "two threads"},
    {"memory", "no growth over 1000 calls"},
    {"outlives", "a result outlives its executable"}};

class Suite {
 public:
  Suite(Spawner& spawner, const BackendEntry& backend, const ConformanceOptions& options)
      : spawner_(spawner), backend_(backend), options_(options) {}

  std::vector<ConformanceResult> run(std::span<const ConformanceModel> models) {
    check("it opens", [this]() -> Result<Outcome> {
      HASTEN_TRY_STATUS(worker());
      return Outcome{.detail = backend_.library.string()};
    });
    if (!results_.back().passed) return std::move(results_);
    for (const NamedCheck& c : kOfPlugin) self_test(c, c.title, nullptr, 0);
    check("its description is legal", [this] { return description(); });
    check("two probes agree", [this] { return probe(); });
    if (available_ && models.empty()) {
      report(skip("no model was given"), "build, run, save and load");
    }
    for (size_t i = 0; available_ && i < models.size(); ++i) of_model(models[i], i == 0);
    return std::move(results_);
  }

 private:
  template <class F>
  void check(const std::string& name, F&& body) {
    Result<Outcome> outcome = body();
    report(outcome ? *std::move(outcome) : fail(outcome.error().message), name);
  }

  void report(Outcome outcome, const std::string& name) {
    results_.push_back({name, outcome.passed, outcome.skipped, std::move(outcome.detail)});
    if (options_.after_check) options_.after_check(results_.back());
  }

  // The worker of the last check, or another one if it did not survive that.
  Result<Worker*> worker() {
    if (worker_ && worker_->alive()) return &*worker_;
    worker_.reset();
    folder_ = options_.work_dir / format("worker-{}", n_workers_++);
    for (const char* name : {"home", "tmp", "cwd", "work"})
      HASTEN_TRY_STATUS(make_folder(folder_ / name));
    HASTEN_TRY(Worker started,
               Worker::start(spawner_, {.backend = backend_,
                                        .work_dir = folder_ / "work",
                                        .threads = options_.threads,
                                        .environment = {{"HOME", (folder_ / "home").string()},
                                                        {"TMPDIR", (folder_ / "tmp").string()}},
                                        .start_timeout = options_.timeout,
                                        .folder = folder_ / "cwd"}));
    worker_ = std::move(started);
    return &*worker_;
  }

  Json build_request(const ConformanceModel& model) const {
    Json config = Json::object();
    for (const auto& [key, value] : model.config) config.set(key, value);
    return Json::object({{"model", fs::absolute(model.path).string()},
                         {"format", model.format},
                         {"graph", model.graph},
                         {"config", std::move(config)},
                         {"work_dir", fs::absolute(folder_ / "work" / "build").string()}});
  }

  void self_test(const NamedCheck& c, const std::string& title, const ConformanceModel* model,
                 size_t sample) {
    check(title, [&]() -> Result<Outcome> {
      if (backend_.library.empty()) return skip("it is a program, not a library");
      HASTEN_TRY(Worker * w, worker());
      Json request = Json::object({{"check", c.name}, {"library", backend_.library.string()}});
      if (model) {
        Json tolerance = Json::array();
        tolerance.push(model->tolerance.absolute);
        tolerance.push(model->tolerance.relative);
        request.set("build", build_request(*model)).set("tolerance", std::move(tolerance));
        request.set("slot", sample);
        if (sample < model->samples.size()) {
          HASTEN_TRY_STATUS(w->set_inputs(sample, model->samples[sample], options_.timeout));
        }
      }
      HASTEN_TRY(const Json reply, w->self_test(request, options_.timeout));
      return Outcome{reply["passed"].as_bool(), reply["skipped"].as_bool(),
                     reply["detail"].as_string()};
    });
  }

  Result<Outcome> description() {
    HASTEN_TRY(Worker * w, worker());
    HASTEN_TRY(description_, w->describe(options_.timeout));
    HASTEN_TRY_STATUS(check_description(description_));
    return Outcome{.detail = description_["title"].as_string()};
  }

  Result<Outcome> probe() {
    HASTEN_TRY(Worker * w, worker());
    auto first = w->probe(options_.timeout);
    if (!w->alive()) return std::move(first).error();
    auto second = w->probe(options_.timeout);
    if (first.has_value() != second.has_value()) return fail("one works, the other does not");
    if (!first) {
      available_ = false;
      if (first.error().code != Code::kUnavailable) return std::move(first).error();
      const bool same = first.error().message == second.error().message;
      return same ? skip("unavailable: " + first.error().message) : fail("two reasons");
    }
    if (*first != *second) return fail("two probes give different facts");
    if ((*first)["library_version"].as_string().empty()) return fail("no 'library_version'");
    return Outcome{.detail = first->dump()};
  }

  void of_model(const ConformanceModel& model, bool first) {
    const std::string where = ": " + model.path.filename().string();
    if (first) {
      for (const NamedCheck& c : kOfOptions) self_test(c, c.title, &model, model.samples.size());
    }
    check("its signature is legal" + where, [&] { return signature(model); });
    check("its candidates are legal" + where, [&]() -> Result<Outcome> {
      HASTEN_TRY(Worker * w, worker());
      HASTEN_TRY(const Json list, w->candidates(model.path, model.format, options_.timeout));
      HASTEN_TRY_STATUS(check_candidates(list, description_));
      return Outcome{.detail = format("{} candidates", list.items().size())};
    });
    check("it writes only where it may" + where, [&] { return stray_files(model); });
    for (size_t s = 0; s < model.samples.size(); ++s) {
      check(format("sample {}{}", s, where), [&] { return values(model, s); });
    }
    if (model.samples.empty()) {
      report(skip("no inputs were given"), "running" + where);
      return;
    }
    for (const NamedCheck& c : kOfModel) self_test(c, c.title + where, &model, 0);
  }

  Result<Outcome> signature(const ConformanceModel& model) {
    HASTEN_TRY(Worker * w, worker());
    auto json = w->inspect(model.path, model.format, options_.timeout);
    bool listed = false;
    for (const Json& kind : description_["inspects"].items()) {
      listed = listed || kind.as_string() == model.format;
    }
    if (!listed) {
      if (!json && json.error().code == Code::kUnsupported) return skip("it does not inspect");
      return fail("it answers for a format that it does not list");
    }
    if (!json) return std::move(json).error();
    HASTEN_TRY(const Signature signature, Signature::from_json(*json));
    return Outcome{.detail = format("{} inputs, {} outputs", signature.inputs.size(),
                                    signature.outputs.size())};
  }

  // In a worker of its own, whose home, temporary and working folders are still empty.
  Result<Outcome> stray_files(const ConformanceModel& model) {
    worker_.reset();
    HASTEN_TRY(Worker * w, worker());
    HASTEN_TRY_STATUS(build(*w, model));
    if (!model.samples.empty()) {
      HASTEN_TRY_STATUS(w->set_inputs(0, model.samples[0], options_.timeout));
      HASTEN_TRY_STATUS(w->run(0, options_.timeout));
    }
    const Status saved = w->save(folder_ / "saved", options_.timeout);
    // A program whose framework needs Python has nothing to save.
    const bool may_refuse = backend_.library.empty() && w->alive();
    if (!saved && !(may_refuse && saved.error().code == Code::kUnsupported)) return saved.error();
    std::vector<std::string> stray;
    std::error_code error;
    for (const char* name : {"home", "tmp", "cwd"}) {
      for (fs::directory_iterator it(folder_ / name, error), end; !error && it != end;
           it.increment(error)) {
        stray.push_back(format("{}/{}", name, it->path().filename().string()));
      }
    }
    if (!stray.empty()) return fail("it also wrote " + join(stray, ", "));
    return Outcome{};
  }

  Status build(Worker& w, const ConformanceModel& model) {
    return w.build(model.path, model.format, model.graph, {backend_.name, model.config},
                   options_.timeout);
  }

  Result<Outcome> values(const ConformanceModel& model, size_t s) {
    HASTEN_TRY(Worker * w, worker());
    HASTEN_TRY_STATUS(build(*w, model));
    HASTEN_TRY_STATUS(w->set_inputs(s, model.samples[s], options_.timeout));
    HASTEN_TRY(const CallResult result, w->run(s, options_.timeout));
    if (s >= model.expected.size()) return Outcome{.detail = "nothing to compare with"};
    const std::vector<Tensor>& expected = model.expected[s];
    if (expected.size() != result.outputs.size()) {
      return fail(format("{} outputs, not {}", result.outputs.size(), expected.size()));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const Difference d = compare(result.outputs[i], expected[i], model.tolerance);
      if (!d.mismatch.empty()) return fail(format("output {}: {}", i, d.mismatch));
      if (!d.within) {
        return fail(format("output {}: {} elements off, the worst by {:.3g} (limit {:.3g})", i,
                           d.outside, d.absolute, d.limit));
      }
    }
    return Outcome{};
  }

  Spawner& spawner_;
  const BackendEntry& backend_;
  const ConformanceOptions& options_;
  std::vector<ConformanceResult> results_;
  std::optional<Worker> worker_;
  fs::path folder_;
  size_t n_workers_ = 0;
  Json description_;
  bool available_ = true;
};

}  // namespace

std::vector<ConformanceResult> run_conformance(Spawner& spawner, const BackendEntry& backend,
                                               std::span<const ConformanceModel> models,
                                               const ConformanceOptions& options) {
  return Suite(spawner, backend, options).run(models);
}

}  // namespace hasten
