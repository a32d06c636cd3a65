// SPDX-License-Identifier: Apache-2.0
// tune() as a program calls it.
#include <doctest/doctest.h>

#include <hasten/runtime.h>
#include <hasten/tune.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "fake_model.h"

namespace hasten {
namespace {

using testing::FakeModel;

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_CASE("tune: a program gets the report, the table, the artifact and the JSON file") {
  const FakeModel model;
  TuneOptions options = model.options();
  options.json = model.in_folder("report.json");
  const Result<TuneReport> report = tune(options);
  REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
  CHECK_FALSE(report->fell_back);
  CHECK(report->json.find("\"winner\"") != std::string::npos);
  CHECK(report->table.find("fake:latency_us=1") != std::string::npos);
  CHECK(report->table.find('\033') == std::string::npos);
  CHECK(text_of(options.json) == report->json + "\n");
  const Result<Session> session =
      Session::load(options.output, {.plugin_dirs = {FakeModel::plugins()}});
  REQUIRE(session);
  CHECK(session->backend() == "fake:latency_us=1");
}

TEST_CASE("tune: events tell each stage in the order of the work, one line each") {
  const FakeModel model;
  std::vector<std::string> stages;
  std::vector<std::string> candidates;
  const Result<TuneReport> report = tune(model.options(), [&](const TuneEvent& event) {
    if (event.kind == TuneEvent::Kind::kWarning) return;
    CHECK(event.text.find('\n') == std::string::npos);
    if (stages.empty() || stages.back() != event.stage) stages.push_back(event.stage);
    if (!event.candidate.empty()) candidates.push_back(event.candidate);
  });
  REQUIRE(report);
  CHECK(stages == std::vector<std::string>{"inspect", "reference", "build", "check", "measure",
                                           "confirm", "save"});
  CHECK(std::ranges::all_of(candidates,
                            [](const std::string& name) { return name == "fake:latency_us=1"; }));
  CHECK_FALSE(candidates.empty());
}

TEST_CASE("tune: a stop requested from an event ends it and keeps the journal") {
  const FakeModel model;
  std::stop_source source;
  TuneOptions options = model.options();
  options.stop = source.get_token();
  const Result<TuneReport> report = tune(options, [&](const TuneEvent& event) {
    if (event.stage == "measure") source.request_stop();
  });
  REQUIRE_FALSE(report);
  CHECK(report.error().code == Code::kCancelled);
  CHECK_FALSE(std::filesystem::exists(options.output));
  CHECK(text_of(options.output.string() + ".journal.jsonl").find("latency_us") !=
        std::string::npos);
}

TEST_CASE("tune: what goes wrong has the code that the header promises") {
  const FakeModel model;
  const auto code_of = [](const TuneOptions& options) {
    const Result<TuneReport> report = tune(options);
    REQUIRE_FALSE(report);
    CHECK_FALSE(report.error().message.empty());
    return report.error().code;
  };
  TuneOptions options = model.options();
  options.model = model.in_folder("missing.onnx");
  CHECK(code_of(options) == Code::kInvalidArgument);

  options = model.options();
  options.backends = {"nobody"};
  CHECK(code_of(options) == Code::kInvalidArgument);

  options = model.options();
  options.backends = {"fake:fault=zeros"};
  options.performance_validation = false;
  CHECK(code_of(options) == Code::kUnsupported);

  setenv("HASTEN_FAKE_PROBE", "unavailable", 1);
  options = model.options();
  CHECK(code_of(options) == Code::kUnavailable);
  unsetenv("HASTEN_FAKE_PROBE");
}

TEST_CASE("tune: numbers that mean nothing are refused, each by its name") {
  const FakeModel model;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [&](auto change, const char* name) {
    TuneOptions options = model.options();
    change(options);
    const Result<TuneReport> report = tune(options);
    REQUIRE_FALSE(report);
    CHECK(report.error().code == Code::kInvalidArgument);
    CHECK_MESSAGE(report.error().message.find(name) != std::string::npos, report.error().message);
  };
  using std::chrono::seconds;
  refused([&](TuneOptions& o) { o.min_speedup = nan; }, "minimal speed-up");
  refused([&](TuneOptions& o) { o.min_speedup = -0.1; }, "minimal speed-up");
  refused([&](TuneOptions& o) { o.absolute_tolerance = nan; }, "tolerance");
  refused([&](TuneOptions& o) { o.relative_tolerance = -1; }, "tolerance");
  refused([&](TuneOptions& o) { o.allow_lossy = 0; }, "lower precision");
  refused([&](TuneOptions& o) { o.batch_sizes = {1, 0}; }, "batch size");
  refused([&](TuneOptions& o) { o.threads = -1; }, "threads");
  refused([&](TuneOptions& o) { o.max_time = seconds(0); }, "time for all");
  refused([&](TuneOptions& o) { o.build_timeout = seconds(-1); }, "time for a build");
  refused([&](TuneOptions& o) { o.run_timeout = seconds(0); }, "time for a call");
}

TEST_CASE("tune: what cannot begin leaves the journal of the tune before") {
  const FakeModel model;
  const TuneOptions good = model.options();
  const std::filesystem::path journal = good.output.string() + ".journal.jsonl";
  std::ofstream(journal) << "of the tune before\n";
  TuneOptions options = good;
  options.model = model.in_folder("typo.onnx");
  CHECK_FALSE(tune(options));
  options = good;
  options.inputs = {"y=float32[B,3]"};
  CHECK_FALSE(tune(options));
  CHECK(text_of(journal) == "of the tune before\n");

  // Nor does one that would write where another tune does.
  const int other = open(journal.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(other, LOCK_EX) == 0);
  const Result<TuneReport> second = tune(good);
  close(other);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Code::kIo);
  CHECK(second.error().message.find("another process is writing") != std::string::npos);
  CHECK(text_of(journal) == "of the tune before\n");
}

TEST_CASE("tune: one that fails shows what became of each candidate") {
  const FakeModel model;
  TuneOptions options = model.options();
  options.backends = {"fake:fault=zeros"};
  options.performance_validation = false;
  std::string table;
  const Result<TuneReport> report = tune(options, [&](const TuneEvent& event) {
    if (event.kind == TuneEvent::Kind::kTable) table += event.text;
  });
  CHECK_FALSE(report);
  CHECK(table.find("fake:fault=zeros") != std::string::npos);
  CHECK(table.find("rejected") != std::string::npos);
}

TEST_CASE("tune: one that is ended speaks of a journal only where there is one") {
  const FakeModel model;
  TuneOptions options = model.options();
  options.output.clear();
  std::stop_source source;
  options.stop = source.get_token();
  const Result<TuneReport> report = tune(options, [&](const TuneEvent& event) {
    if (event.stage == "measure") source.request_stop();
  });
  REQUIRE_FALSE(report);
  CHECK(report.error().message == "the tune was ended");
}

TEST_CASE("tune: a wrong candidate leaves the original, which the report tells") {
  const FakeModel model;
  TuneOptions options = model.options();
  options.backends = {"fake:fault=wrong_row"};
  const Result<TuneReport> report = tune(options);
  REQUIRE(report);
  CHECK(report->fell_back);
  CHECK(report->json.find("\"rejected\"") != std::string::npos);
}

}  // namespace
}  // namespace hasten
