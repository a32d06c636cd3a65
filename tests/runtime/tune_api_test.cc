// SPDX-License-Identifier: Apache-2.0
// tune() as a program calls it.
#include <doctest/doctest.h>

#include <hasten/runtime.h>
#include <hasten/tune.h>

#include <algorithm>
#include <fstream>
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
    CHECK(event.fraction <= 1);
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
