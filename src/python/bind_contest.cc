// SPDX-License-Identifier: Apache-2.0
// The judges, for candidates that live in the caller's process: the same check, race and
// choice that a tune makes of its children.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "check/check.h"
#include "measure/race.h"
#include "python/bindings.h"
#include "python/raise.h"
#include "python/tensors.h"
#include "strategy/strategy.h"
#include "tune/turns.h"

namespace nb = nanobind;

namespace hasten {
namespace {

using std::chrono::nanoseconds;

class Judge {
 public:
  Judge(std::vector<std::string> names, std::optional<double> atol, std::optional<double> rtol,
        std::optional<double> lossy)
      : names_(std::move(names)) {
    policy_.absolute = atol;
    policy_.relative = rtol;
    policy_.lossy = lossy;
  }

  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  void add(std::string what, const nb::list& outputs, const nb::list& exact) {
    references_.push_back({std::move(what), from_python(outputs), from_python(exact)});
    tolerances_.clear();
  }

  std::string check(size_t index, const nb::list& outputs) {
    if (tolerances_.empty()) tolerances_ = derive_tolerances(references_, policy_);
    const std::vector<Tensor> actual = from_python(outputs);
    return check_outputs(actual, references_.at(index), tolerances_, names_).to_json().dump();
  }

 private:
  std::vector<std::string> names_;
  TolerancePolicy policy_;
  std::vector<Reference> references_;
  std::vector<OutputTolerance> tolerances_;
};

// Calls a Python function for about `budget`. An exception of its own ends the arm; Ctrl-C
// ends the race.
class PythonTurn {
 public:
  PythonTurn(nb::object call, nb::object heartbeat, std::stop_source stop)
      : call_(std::move(call)), heartbeat_(std::move(heartbeat)), stop_(stop) {}

  Result<std::vector<int64_t>> operator()(nanoseconds budget) const {
    std::vector<int64_t> durations;
    const nanoseconds begin = real_clock().now();
    nanoseconds now = begin;
    do {
      const nanoseconds before = real_clock().now();
      PyObject* result = PyObject_CallNoArgs(call_.ptr());
      now = real_clock().now();
      if (!result) return Error{Code::kRunFailed, take_message()};
      Py_DECREF(result);
      durations.push_back((now - before).count());
    } while (now - begin < budget);
    if (PyErr_CheckSignals() != 0 || !beats()) stop_.request_stop();
    return durations;
  }

 private:
  bool beats() const {
    if (heartbeat_.is_none()) return true;
    PyObject* result = PyObject_CallNoArgs(heartbeat_.ptr());
    Py_XDECREF(result);
    return result != nullptr;
  }
  std::string take_message() const {
    // What is no Exception (KeyboardInterrupt, SystemExit) is not this arm's own failure.
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
      stop_.request_stop();
      return "interrupted";
    }
    const nb::python_error error;
    return format("{}: {}", nb::cast<std::string>(error.type().attr("__name__")),
                  nb::cast<std::string>(nb::str(error.value())));
  }

  nb::object call_, heartbeat_;
  mutable std::stop_source stop_;
};

Json arm_json(const ArmSamples& arm, const ArmSamples& first, int64_t batch_size) {
  const std::optional<Point> point = point_of(arm, &first, batch_size);
  return Json::object({{"label", arm.label},
                       {"point", point ? point->to_json() : Json()},
                       {"dropped", arm.dropped},
                       {"error", arm.failure ? Json(arm.failure->message) : Json()}});
}

std::string race(const nb::list& arms, int64_t batch_size, size_t min_rounds, size_t max_rounds,
                 std::optional<double> max_time_s, uint64_t seed,
                 const nb::object& heartbeat) {
  std::stop_source stop;
  std::vector<Arm> entrants;
  for (const nb::handle item : arms) {
    const auto [label, call, keep] = nb::cast<std::tuple<std::string, nb::object, bool>>(item);
    Arm arm{.label = label, .turn = PythonTurn(call, heartbeat, stop), .keep = keep};
    if (Status warm = warm_up(arm); !warm) {
      if (PyErr_Occurred()) throw nb::python_error();
      const std::string reason = warm.error().message;
      arm.turn = [reason](nanoseconds) -> Result<std::vector<int64_t>> {
        return Error{Code::kRunFailed, reason};
      };
    }
    entrants.push_back(std::move(arm));
  }
  RaceOptions options;
  options.turn = kTurnLength;
  options.min_rounds = min_rounds;
  options.max_rounds = max_rounds;
  if (max_time_s) {
    options.max_time = std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(*max_time_s));
  }
  options.confidence = kRaceConfidence;
  options.indifference = kIndifference;
  options.activity = activity_probe({});
  options.seed = seed;
  options.stop = stop.get_token();
  const RaceResult result = run_race(entrants, options, real_clock());
  if (PyErr_Occurred()) throw nb::python_error();
  Json json = Json::array();
  for (const ArmSamples& arm : result.arms) {
    json.push(arm_json(arm, result.arms.front(), batch_size));
  }
  return Json::object({{"arms", std::move(json)},
                       {"rounds", result.rounds},
                       {"discarded", result.discarded},
                       {"reason", to_string(result.reason)}})
      .dump();
}

std::string choose_backend(const std::string& strategy, bool performance_validation,
                           const std::vector<std::string>& trials, const std::string& baseline,
                           std::optional<double> latency_budget_ms) {
  StrategyOptions options;
  const std::optional<StrategyName> name = strategy_from_string(strategy);
  if (!name) raise({Code::kInvalidArgument, format("unknown strategy '{}'", strategy)});
  options.name = *name;
  options.performance_validation = performance_validation;
  options.latency_budget_ms = latency_budget_ms;
  const auto parsed = [](const std::string& text) {
    return value_or_raise(Trial::from_json(value_or_raise(Json::parse(text))));
  };
  std::vector<Trial> contestants;
  for (const std::string& text : trials) contestants.push_back(parsed(text));
  std::optional<Trial> original;
  if (baseline != "null") original = parsed(baseline);
  const Choice choice = value_or_raise(choose(options, contestants, original));
  return Json::object({{"trial", choice.trial ? Json(*choice.trial) : Json()},
                       {"selected_batch_size", choice.selected_batch_size},
                       {"throughput", choice.throughput},
                       {"latency_ms", choice.latency_ms},
                       {"speedup", choice.speedup ? to_json(*choice.speedup) : Json()},
                       {"fell_back", choice.fell_back},
                       {"passed", choice.passed},
                       {"why", choice.why}})
      .dump();
}

}  // namespace

void bind_contest(nb::module_& module) {
  nb::class_<Judge>(module, "Judge",
                    "Holds what the original answered; says whether others answer the same.")
      .def(nb::init<std::vector<std::string>, std::optional<double>, std::optional<double>,
                    std::optional<double>>(),
           nb::arg("names"), nb::arg("atol") = nb::none(), nb::arg("rtol") = nb::none(),
           nb::arg("lossy") = nb::none())
      .def("add", &Judge::add, nb::arg("what"), nb::arg("outputs"), nb::arg("exact") = nb::list(),
           "One case: the original's outputs, and the same in float64 where the model can do that.")
      .def("check", &Judge::check, nb::arg("index"), nb::arg("outputs"),
           "The outputs of another for case `index`, as the JSON of a check (see "
           "docs/schema/tune.schema.json).");
  module.def("race", &race, nb::arg("arms"), nb::kw_only(), nb::arg("batch_size") = 1,
             nb::arg("min_rounds") = 10, nb::arg("max_rounds") = 40,
             nb::arg("max_time_s") = nb::none(), nb::arg("seed") = 0,
             nb::arg("heartbeat") = nb::none(),
             "Rounds of turns over `arms`, tuples (label, callable, keep); the first is what the "
             "others are compared with. `heartbeat()` is called after each turn; an exception in it ends "
             "the race and is raised again. JSON: {'arms': [{'label', 'point', 'dropped', 'error'}], ...}.");
  module.def("choose", &choose_backend, nb::arg("strategy"), nb::arg("performance_validation"),
             nb::arg("trials"), nb::arg("baseline"), nb::arg("latency_budget_ms") = nb::none(),
             "What a strategy chooses among trials (JSON texts, as in a report; 'null': the original "
             "was not measured). JSON; its 'trial' is an index, or null for the original.");
}

}  // namespace hasten
