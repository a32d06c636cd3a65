// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include "report/columns.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hasten {
namespace {

Point point(int64_t batch_size, Interval latency_ms, std::optional<Interval> speedup,
            Verdict verdict) {
  Point p;
  p.batch_size = batch_size;
  p.latency_ms = latency_ms;
  p.throughput = static_cast<double>(batch_size) * 1000 / latency_ms.estimate;
  p.speedup = speedup;
  p.verdict = verdict;
  return p;
}

Trial measured(const std::string& label, std::vector<Point> points) {
  Trial trial;
  trial.candidate = Candidate::parse(label).value();
  trial.status = TrialStatus::kOk;
  trial.points = std::move(points);
  return trial;
}

Trial failed(const std::string& label, TrialStatus status, Stage stage, Error error) {
  Trial trial;
  trial.candidate = Candidate::parse(label).value();
  trial.status = status;
  trial.failure = Failure{.stage = stage, .error = std::move(error)};
  return trial;
}

CheckRecord agreed(double absolute, double limit) {
  CheckRecord check;
  check.passed = true;
  check.worst = WorstDeviation{};
  check.worst->absolute = absolute;
  check.worst->limit = limit;
  return check;
}

TuneRecord small_record() {
  GraphRecord graph;
  graph.baseline = measured("eager", {point(1, {4.5, 4.4, 4.6}, std::nullopt, Verdict::kSame)});
  Trial best =
      measured("openvino:hint=latency",
               {point(1, {3.41, 3.4, 3.43}, Interval{1.32, 1.29, 1.35}, Verdict::kFaster)});
  best.peak_memory_bytes = 88000000;
  best.check = agreed(2e-6, 4e-5);
  Trial slow = measured("torchscript",
                        {point(1, {12.3, 11, 14}, Interval{0.37, 0.3, 0.4}, Verdict::kSlower)});
  graph.trials = {
      slow, best,
      failed("inductor", TrialStatus::kFailed, Stage::kBuild,
             {Code::kBuildFailed, "g++ was not found in PATH\nsecond line", "apt-get install g++"}),
      failed("openvino:precision=int8", TrialStatus::kRejected, Stage::kCheck,
             {Code::kWrongResult, "output 'y' is off by 0.03", ""}),
      failed("tensorrt", TrialStatus::kUnavailable, Stage::kProbe,
             {Code::kUnavailable, "libnvinfer.so.10: cannot open", ""})};
  graph.winner = WinnerRecord{};
  graph.winner->candidate = best.candidate;
  graph.winner->speedup = Interval{1.31, 1.29, 1.33};
  graph.winner->why = "openvino:hint=latency has the lowest latency at batch size 1";
  TuneRecord record;
  record.graphs = {graph};
  record.warnings = {"load average 1.8 on 2 CPUs"};
  record.artifact = "/tmp/model.hasten";
  return record;
}

TEST_CASE("table: a tune reads from the ranking to the conclusion") {
  CHECK(table(small_record()) ==
        "  rank  candidate              batch  rows/s   median  interval     "
        "speed-up            memory  worst error (limit)  verdict\n"
        "  1     openvino:hint=latency      1     293  3.41 ms  3.40 … 3.43  "
        "1.32 (1.29 … 1.35)   88 MB  2.0e-06 (4.0e-05)    faster\n"
        "  2     eager (original)           1     222  4.50 ms  4.40 … 4.60\n"
        "  3     torchscript                1    81.3  12.3 ms  11.0 … 14.0  "
        "0.37 (0.30 … 0.40)                               slower\n"
        "\n"
        "  rejected   openvino:precision=int8  check: output 'y' is off by 0.03\n"
        "  failed     inductor                 build: g++ was not found in PATH\n"
        "                                      hint: apt-get install g++\n"
        "  not tried  tensorrt                 probe: libnvinfer.so.10: cannot open\n"
        "\n"
        "  chosen   openvino:hint=latency, 1.31 (1.29 … 1.33) times as fast as the original at "
        "batch size 1\n"
        "  because  openvino:hint=latency has the lowest latency at batch size 1\n"
        "\n"
        "  warning  load average 1.8 on 2 CPUs\n"
        "  saved    /tmp/model.hasten\n");
}

TEST_CASE("table: who left the race early had no time for a verdict, which is no doubt") {
  TuneRecord record = small_record();
  Point& point = record.graphs[0].trials[0].points[0];
  point.verdict = Verdict::kCannotTell;
  CHECK(table(record).find("cannot tell\n") != std::string::npos);
  point.left_early = true;
  CHECK(table(record).find("left early\n") != std::string::npos);
  CHECK(table(record).find("cannot tell") == std::string::npos);
  // Far enough behind the original for a verdict of its own.
  point.verdict = Verdict::kSlower;
  CHECK(table(record).find("slower, left early\n") != std::string::npos);
}

TEST_CASE("table: a doubtful speed-up is told where it stands") {
  TuneRecord record = small_record();
  for (Trial& trial : record.graphs[0].trials) {
    for (Point& point : trial.points) point.doubt = "why";
  }
  record.graphs[0].winner->doubt = "half of the calls took 900 ms";
  const std::string text = table(record);
  CHECK(text.find("faster, doubtful") != std::string::npos);
  CHECK(text.find("\n  doubtful half of the calls took 900 ms\n  because") != std::string::npos);
}

TEST_CASE("table: the original that was kept stands first, with the reason") {
  TuneRecord record = small_record();
  WinnerRecord& winner = *record.graphs[0].winner;
  winner.candidate = record.graphs[0].baseline.candidate;
  winner.fell_back = true;
  winner.speedup = Interval{1, 1, 1};
  winner.why = "the original model is kept: nothing is faster";
  const std::string text = table(record);
  CHECK(text.find("\n  1     eager (original) ") != std::string::npos);
  CHECK(text.find("  chosen   eager (the original)\n") != std::string::npos);
  CHECK(text.find("  because  the original model is kept: nothing is faster\n") !=
        std::string::npos);
}

TEST_CASE("table: several batch sizes are shown side by side, the ranking at the chosen one") {
  TuneRecord record = small_record();
  GraphRecord& graph = record.graphs[0];
  graph.trials[1].points.push_back(
      point(8, {20, 19, 21}, Interval{1.5, 1.4, 1.6}, Verdict::kFaster));
  graph.winner->selected_batch_size = 8;
  const std::string text = table(record);
  CHECK(text.find("  1     openvino:hint=latency      8     400") != std::string::npos);
  CHECK(text.find("  rows/s at batch size      1    8\n"
                  "  openvino:hint=latency   293  400\n"
                  "  eager (original)        222    -\n"
                  "  torchscript            81.3    -\n") != std::string::npos);
}

TEST_CASE("table: figures keep a unit that can be read") {
  struct Case {
    double ms;
    std::string median, interval;
  };
  const Case cases[] = {{0.0000512, "51.2 ns", "51.2 … 51.2"},
                        {0.00512, "5.12 µs", "5.12 … 5.12"},
                        {0.512, "512 µs", "512 … 512"},
                        {51.2, "51.2 ms", "51.2 … 51.2"},
                        {5120, "5.12 s", "5.12 … 5.12"}};
  for (const Case& c : cases) {
    TuneRecord record;
    record.graphs.emplace_back();
    record.graphs[0].trials = {
        measured("a", {point(1, {c.ms, c.ms, c.ms}, std::nullopt, Verdict::kCannotTell)})};
    const std::string text = table(record);
    CHECK(text.find(c.median + "  " + c.interval) != std::string::npos);
    CHECK(text.find("cannot tell") != std::string::npos);
  }
}

TEST_CASE("table: an interval that is not bounded says so") {
  const double inf = std::numeric_limits<double>::infinity();
  TuneRecord record;
  record.graphs.emplace_back();
  record.graphs[0].trials = {
      measured("a", {point(1, {2, -inf, inf}, Interval{1.5, 0, inf}, Verdict::kCannotTell)})};
  const std::string text = table(record);
  CHECK(text.find("2.00 ms  too few rounds  1.50 (too few rounds)") != std::string::npos);
}

TEST_CASE("table: a candidate without figures is left out, with its note") {
  TuneRecord record;
  record.graphs.emplace_back();
  Trial dropped = measured("a", {});
  dropped.status = TrialStatus::kDropped;
  dropped.note = "the time was spent";
  record.graphs[0].trials = {dropped, measured("b", {})};
  record.error = "no correct backend is left";
  CHECK(table(record) ==
        "  left out  a  the time was spent\n"
        "  left out  b  not measured\n"
        "  error    no correct backend is left\n");
}

TEST_CASE("table: several graphs have a heading each") {
  TuneRecord record = small_record();
  record.graphs.push_back(record.graphs[0]);
  record.graphs[0].inputs = {"x float32[B=1..2,3]", "h float32[4]"};
  record.graphs[1].name = "1";
  const std::string text = table(record);
  CHECK(text.find("graph 0, recorded with x float32[B=1..2,3], h float32[4]\n") == 0);
  CHECK(text.find("\ngraph 1, recorded with ") != std::string::npos);
}

TEST_CASE("table: nothing known yet gives nothing") { CHECK(table(TuneRecord{}).empty()); }

TEST_CASE("Columns: wide characters, accents and combining marks keep their columns") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("é…µ") == 3);
  CHECK(display_width("模型") == 4);
  CHECK(display_width("e\xCC\x81") == 1);
  Columns columns({{"name"}, {"n", true}, {"unused"}});
  columns.add({"模型", "1", ""});
  columns.add({"model", "10", ""});
  CHECK(columns.text("") == "name    n\n模型    1\nmodel  10\n");
}

TEST_CASE("Columns: a line feed in a cell stays on the line, missing cells are empty") {
  Columns columns({{""}, {""}});
  columns.add({"a\nb"});
  CHECK(columns.text("> ") == "> a b\n");
}

}  // namespace
}  // namespace hasten
