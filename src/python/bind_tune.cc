// SPDX-License-Identifier: Apache-2.0
#include <hasten/tune.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "python/bindings.h"
#include "python/raise.h"
#include "strategy/strategy.h"

namespace nb = nanobind;

namespace hasten {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

// How often the caller's thread looks for Ctrl-C while the tune goes on.
constexpr std::chrono::milliseconds kSlice{50};

nanoseconds seconds(double s) { return duration_cast<nanoseconds>(std::chrono::duration<double>(s)); }

// Runs the tune in a thread of its own. The caller's thread delivers what it says, so that
// Python code runs where its owner expects it, and keeps listening for signals.
class Conversation {
 public:
  Conversation(TuneOptions options, nb::object progress, nb::object heartbeat)
      : progress_(std::move(progress)), heartbeat_(std::move(heartbeat)) {
    options.stop = stop_.get_token();
    thread_ = std::jthread([this, options = std::move(options)] {
      Result<TuneReport> report = tune(options, [this](const TuneEvent& event) { say(event); });
      const std::lock_guard lock(mutex_);
      report_ = std::move(report);
      changed_.notify_all();
    });
  }

  Result<TuneReport> wait() {
    std::exception_ptr interrupt;
    for (;;) {
      const std::deque<TuneEvent> events = next();
      if (!interrupt) interrupt = deliver(events);
      if (interrupt) stop_.request_stop();
      if (events.empty() && finished()) break;
    }
    if (interrupt) std::rethrow_exception(interrupt);
    return std::move(*report_);
  }

 private:
  void say(const TuneEvent& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  bool finished() {
    const std::lock_guard lock(mutex_);
    return report_.has_value() && events_.empty();
  }
  std::deque<TuneEvent> next() {
    const nb::gil_scoped_release others_go_on;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kSlice, [&] { return report_ || !events_.empty(); });
    return std::exchange(events_, {});
  }
  std::exception_ptr deliver(const std::deque<TuneEvent>& events) {
    try {
      for (const TuneEvent& event : events) {
        // Rounds that come and go are for a line that renews itself.
        if (progress_.is_none() || event.kind == TuneEvent::Kind::kProgress) continue;
        progress_(event.stage, event.candidate, event.text);
      }
      if (!heartbeat_.is_none()) heartbeat_();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (const std::exception&) {
      return std::current_exception();
    }
    return nullptr;
  }

  nb::object progress_, heartbeat_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TuneEvent> events_;
  std::optional<Result<TuneReport>> report_;
  std::jthread thread_;  // Last: it uses the others.
};

StrategyName strategy_named(const std::string& name) {
  const std::optional<StrategyName> strategy = strategy_from_string(name);
  if (!strategy) raise({Code::kInvalidArgument, "unknown strategy '" + name + "'"});
  return *strategy;
}

nb::tuple run_tune(const std::filesystem::path& model, const std::vector<std::string>& inputs,
                   const std::string& strategy, const std::vector<std::string>& backends,
                   const std::vector<int64_t>& batch_sizes, std::optional<double> latency_budget_ms,
                   double min_speedup, bool performance_validation, std::optional<double> atol,
                   std::optional<double> rtol, std::optional<double> allow_lossy,
                   std::optional<double> max_time_s, double build_timeout_s, double run_timeout_s,
                   int threads, uint64_t seed, const std::filesystem::path& output,
                   nb::object progress, nb::object heartbeat) {
  TuneOptions options;
  options.model = model;
  options.inputs = inputs;
  options.strategy = strategy_named(strategy);
  options.backends = backends;
  options.batch_sizes = batch_sizes;
  if (latency_budget_ms) options.latency_budget = seconds(*latency_budget_ms / 1000);
  options.min_speedup = min_speedup;
  options.performance_validation = performance_validation;
  options.absolute_tolerance = atol;
  options.relative_tolerance = rtol;
  options.allow_lossy = allow_lossy;
  if (max_time_s) options.max_time = seconds(*max_time_s);
  options.build_timeout = seconds(build_timeout_s);
  options.run_timeout = seconds(run_timeout_s);
  options.threads = threads;
  options.seed = seed;
  options.output = output;
  const TuneReport report =
      value_or_raise(Conversation(std::move(options), std::move(progress), std::move(heartbeat)).wait());
  return nb::make_tuple(report.json, report.table);
}

}  // namespace

void bind_tune(nb::module_& module) {
  module.def("tune", &run_tune, nb::arg("model"), nb::arg("inputs"), nb::kw_only(),
             nb::arg("strategy") = "max-throughput", nb::arg("backends") = std::vector<std::string>{},
             nb::arg("batch_sizes") = std::vector<int64_t>{},
             nb::arg("latency_budget_ms") = nb::none(), nb::arg("min_speedup") = 0.01,
             nb::arg("performance_validation") = true, nb::arg("atol") = nb::none(),
             nb::arg("rtol") = nb::none(), nb::arg("allow_lossy") = nb::none(),
             nb::arg("max_time_s") = nb::none(), nb::arg("build_timeout_s") = 600.0,
             nb::arg("run_timeout_s") = 60.0, nb::arg("threads") = 0, nb::arg("seed") = 0,
             nb::arg("output") = std::filesystem::path(), nb::arg("progress") = nb::none(),
             nb::arg("heartbeat") = nb::none(),
             "What `hasten tune` does; see hasten/tune.h. Returns the report as JSON and as a table. "
             "`progress(stage, candidate, text)` is called from this thread, and `heartbeat()` at least "
             "ten times a second; an exception in them, or Ctrl-C, ends the tune within two seconds and is raised again.");
}

}  // namespace hasten
