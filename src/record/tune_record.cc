// SPDX-License-Identifier: Apache-2.0
#include "record/tune_record.h"

#include "base/version.h"
#include "record/or_null.h"

namespace hasten {
namespace {

// Raised when a field changes its meaning or goes away, not when one is added.
constexpr int kSchema = 1;

Json texts(const std::vector<std::string>& lines) {
  Json list = Json::array();
  for (const std::string& line : lines) list.push(line);
  return list;
}

Json speedup_or_null(const std::optional<Interval>& speedup) {
  if (!speedup) return nullptr;
  return to_json(*speedup);
}

Json winner_or_null(const std::optional<WinnerRecord>& winner) {
  if (!winner) return nullptr;
  return Json::object({{"graph", winner->graph},
                       {"backend", winner->candidate.backend},
                       {"config", winner->candidate.config_json()},
                       {"selected_batch_size", winner->selected_batch_size},
                       {"throughput", finite_or_null(winner->throughput)},
                       {"latency_ms", finite_or_null(winner->latency_ms)},
                       {"speedup", speedup_or_null(winner->speedup)},
                       {"fell_back", winner->fell_back},
                       {"passed", winner->passed},
                       {"why", winner->why},
                       {"doubt", text_or_null(winner->doubt)}});
}

Json graph_json(const GraphRecord& graph) {
  return Json::object({{"name", graph.name},
                       {"inputs", texts(graph.inputs)},
                       {"outputs", texts(graph.outputs)},
                       {"tolerances", texts(graph.tolerances)},
                       {"baseline", graph.baseline.to_json()},
                       {"winner", winner_or_null(graph.winner)}});
}

}  // namespace

Json TuneRecord::to_json() const {
  Json trials = Json::array(), all_graphs = Json::array();
  for (const GraphRecord& graph : graphs) {
    for (const Trial& trial : graph.trials) trials.push(trial.to_json());
    all_graphs.push(graph_json(graph));
  }
  Json json = Json::object({{"schema", kSchema}, {"hasten", kVersion}});
  json.set("environment", environment.to_json());
  json.set("model", model);
  json.set("strategy", strategy);
  json.set("baseline", nullptr).set("trials", std::move(trials)).set("winner", nullptr);
  if (!graphs.empty()) {
    json.set("baseline", graphs.front().baseline.to_json());
    json.set("winner", winner_or_null(graphs.front().winner));
  }
  json.set("artifact", text_or_null(artifact));
  json.set("graphs", std::move(all_graphs));
  json.set("warnings", texts(warnings));
  json.set("error", text_or_null(error.value_or("")));
  json.set("journal", text_or_null(journal));
  json.set("total_s", total_s);
  json.set("harness_s", harness_s);
  return json;
}

}  // namespace hasten
