// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include "base/text.h"
#include "report/columns.h"
#include "report/figures.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace hasten {
namespace {

const std::string kIndent = "  ";

struct Unit {
  std::string_view name;
  double ms;
};

// One unit for a latency and its interval, so that they can be compared at a glance.
Unit unit_for(double ms) {
  if (ms >= 1000) return {"s", 1000};
  if (ms >= 1) return {"ms", 1};
  if (ms >= 1e-3) return {"µs", 1e-3};
  return {"ns", 1e-6};
}

std::string range_text(double low, double high) {
  return std::isfinite(high) ? figure(low) + " … " + figure(high) : "too few rounds";
}

// Who left the race early had too few rounds for a verdict; that is no doubt about it.
std::string verdict_text(const Point& point) {
  if (point.verdict == Verdict::kCannotTell) return point.left_early ? "left early" : "cannot tell";
  std::string text(to_string(point.verdict));
  if (point.left_early) text += ", left early";
  if (!point.doubt.empty()) text += ", doubtful";
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A row of the ranking: a candidate or the original, at one batch size.
struct Row {
  const Trial* trial = nullptr;
  const Point* point = nullptr;
  bool original = false, winner = false;
};

// Where the winner was chosen, so that the rows compare; else where it did best.
const Point* shown_point(const Trial& trial, const std::optional<WinnerRecord>& winner) {
  const Point* best = nullptr;
  for (const Point& point : trial.points) {
    if (!point.measured()) continue;
    if (winner && point.batch_size == winner->selected_batch_size) return &point;
    if (!best || point.throughput > best->throughput) best = &point;
  }
  return best;
}

std::vector<Row> ranking(const GraphRecord& graph) {
  const auto& winner = graph.winner;
  std::vector<Row> rows;
  for (const Trial& trial : graph.trials) {
    const Point* point = shown_point(trial, winner);
    if (trial.status != TrialStatus::kOk || !point) continue;
    const bool won = winner && !winner->fell_back && trial.candidate == winner->candidate;
    rows.push_back({.trial = &trial, .point = point, .original = false, .winner = won});
  }
  if (const Point* point = shown_point(graph.baseline, winner)) {
    rows.push_back({.trial = &graph.baseline,
                    .point = point,
                    .original = true,
                    .winner = winner && winner->fell_back});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.winner != b.winner) return a.winner;
    return a.point->throughput > b.point->throughput;
  });
  return rows;
}

std::string name_of(const Row& row) {
  return row.trial->candidate.label() + (row.original ? " (original)" : "");
}

std::string ranking_text(const std::vector<Row>& rows) {
  Columns columns({{"rank"},
                   {"candidate"},
                   {"batch", true},
                   {"rows/s", true},
                   {"median", true},
                   {"interval"},
                   {"speed-up"},
                   {"memory", true},
                   {"worst error (limit)"},
                   {"verdict"}});
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const Interval& latency = row.point->latency_ms;
    const Unit unit = unit_for(latency.estimate);
    std::string error;
    if (!row.original && row.trial->check && row.trial->check->worst) {
      const WorstDeviation& worst = *row.trial->check->worst;
      error = format("{:.1e} ({:.1e})", worst.absolute, worst.limit);
    }
    const auto& memory = row.trial->peak_memory_bytes;
    columns.add({std::to_string(i + 1), name_of(row), std::to_string(row.point->batch_size),
                 figure(row.point->throughput),
                 format("{} {}", figure(latency.estimate / unit.ms), unit.name),
                 range_text(latency.low / unit.ms, latency.high / unit.ms),
                 row.original || !row.point->speedup ? "" : ratio_text(*row.point->speedup),
                 memory ? human_size(*memory) : "", error,
                 row.original ? "" : verdict_text(*row.point)});
  }
  return columns.text(kIndent);
}

// Rows per second of everybody at every size; only where there is more than one size.
std::string sweep_text(const std::vector<Row>& rows) {
  std::set<int64_t> sizes;
  for (const Row& row : rows) {
    for (const Point& point : row.trial->points) {
      if (point.measured()) sizes.insert(point.batch_size);
    }
  }
  if (sizes.size() < 2) return "";
  std::vector<Column> titles = {{"rows/s at batch size"}};
  for (int64_t size : sizes) titles.push_back({std::to_string(size), true});
  Columns columns(titles);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {name_of(row)};
    for (int64_t size : sizes) {
      const Point* point = row.trial->at(size);
      cells.push_back(point && point->measured() ? figure(point->throughput) : "-");
    }
    columns.add(std::move(cells));
  }
  return "\n" + columns.text(kIndent);
}

std::string reason_of(const Trial& trial) {
  if (trial.failure) {
    return format("{}: {}", to_string(trial.failure->stage),
                  first_line(trial.failure->error.message));
  }
  if (trial.check && !trial.check->passed) return first_line(trial.check->message);
  if (!trial.note.empty()) return first_line(trial.note);
  return "not measured";
}

std::string_view group_of(const Trial& trial) {
  switch (trial.status) {
    case TrialStatus::kUnavailable:
      return "not tried";
    case TrialStatus::kFailed:
      return "failed";
    case TrialStatus::kRejected:
      return "rejected";
    default:
      break;
  }
  return "left out";
}

// Those that are not in the ranking, and what to do about it.
std::string others_text(const GraphRecord& graph) {
  Columns columns({{""}, {""}, {""}});
  for (const std::string_view group : {"rejected", "failed", "left out", "not tried"}) {
    for (const Trial& trial : graph.trials) {
      const bool ranked = trial.status == TrialStatus::kOk && shown_point(trial, graph.winner);
      if (ranked || group_of(trial) != group) continue;
      columns.add({std::string(group), trial.candidate.label(), reason_of(trial)});
      if (!trial.failure || trial.failure->error.hint.empty()) continue;
      columns.add({"", "", "hint: " + first_line(trial.failure->error.hint)});
    }
  }
  return columns.empty() ? "" : "\n" + columns.text(kIndent);
}

std::string result_text(const GraphRecord& graph) {
  if (!graph.winner) return "";
  const WinnerRecord& winner = *graph.winner;
  std::string text = winner.candidate.label();
  if (winner.fell_back) {
    text += " (the original)";
  } else if (winner.speedup) {
    text += format(", {} times as fast as the original at batch size {}",
                   ratio_text(*winner.speedup), winner.selected_batch_size);
  } else {
    text += format(" at batch size {}", winner.selected_batch_size);
  }
  std::string result = format("{}chosen   {}\n", kIndent, text);
  if (!winner.doubt.empty()) result += format("{}doubtful {}\n", kIndent, winner.doubt);
  return result + format("{}because  {}\n", kIndent, winner.why);
}

std::string graph_text(const GraphRecord& graph, bool several) {
  std::string text;
  if (several) {
    text += format("graph {}, recorded with {}\n", graph.name, join(graph.inputs, ", "));
  }
  const std::vector<Row> rows = ranking(graph);
  if (!rows.empty()) text += ranking_text(rows) + sweep_text(rows);
  text += others_text(graph);
  const std::string result = result_text(graph);
  if (!result.empty()) text += "\n" + result;
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace

std::string table(const TuneRecord& record) {
  std::string text;
  for (const GraphRecord& graph : record.graphs) {
    if (!text.empty()) text += "\n";
    text += graph_text(graph, record.graphs.size() > 1);
  }
  std::string end;
  for (const std::string& warning : record.warnings) end += kIndent + "warning  " + warning + "\n";
  if (record.error) end += kIndent + "error    " + *record.error + "\n";
  if (!record.artifact.empty()) end += kIndent + "saved    " + record.artifact + "\n";
  if (!text.empty() && !end.empty() && !record.warnings.empty()) text += "\n";
  return text + end;
}

}  // namespace hasten
