// SPDX-License-Identifier: Apache-2.0
// The conformance suite: an honest plugin passes all of it, and each fault is found.
#include "backend/conformance.h"

#include "worker_fixture.h"

namespace hasten {
namespace {

struct ConformanceFixture : WorkerFixture {
  ConformanceModel affine(std::map<std::string, std::string> config = {}) const {
    ConformanceModel m{.path = model(), .format = "fake"};
    m.config = std::move(config);
    m.samples.push_back(inputs({1, 2, 3}, {1, 3}));
    m.expected.push_back(inputs({3, 5, 7}, {1, 3}));
    m.samples.push_back(inputs({1, 2, 3, 4, 5, 6}, {2, 3}));
    m.expected.push_back(inputs({3, 5, 7, 9, 11, 13}, {2, 3}));
    return m;
  }
  std::vector<ConformanceResult> run(std::span<const ConformanceModel> models,
                                     const std::string& name = "fake") {
    const BackendEntry entry{.name = name, .library = plugin(name), .command = {}, .describe = {}};
    return run_conformance(spawner, entry, models,
                           {.work_dir = folder.path(), .timeout = std::chrono::seconds(20)});
  }
  static std::vector<ConformanceModel> one(ConformanceModel model) {
    std::vector<ConformanceModel> models;
    models.push_back(std::move(model));
    return models;
  }
  // The names of the checks that failed.
  static std::string failures(const std::vector<ConformanceResult>& results) {
    std::string names;
    for (const ConformanceResult& r : results) {
      if (!r.passed && !r.skipped) names += r.name + " (" + r.detail + ")\n";
    }
    return names;
  }
};

TEST_CASE_FIXTURE(ConformanceFixture, "Conformance: an honest plugin passes every check") {
  const auto results = run(one(affine()));
  CHECK(failures(results) == "");
  CHECK(results.size() >= 20);
  for (const ConformanceResult& r : results) CHECK_MESSAGE(!r.skipped, r.name);
}

TEST_CASE_FIXTURE(ConformanceFixture, "Conformance: the template plugin passes every check") {
  ConformanceModel m{.path = folder.path() / "any.txt", .format = "template"};
  std::ofstream(m.path) << "hasten-model template\n";
  m.samples.push_back(inputs({1, 2, 3}, {1, 3}));
  m.expected.push_back(inputs({2, 4, 6}, {1, 3}));
  CHECK(failures(run(one(std::move(m)), "template")) == "");
}

TEST_CASE_FIXTURE(ConformanceFixture, "Conformance: each fault fails the check that looks for it") {
  const std::map<std::string, std::string> found_by = {
      {"write_outside", "it writes only where it may"},
      {"wrong_row", "sample 1"},
      {"wrong_dtype", "sample 0"},
      {"build_crash", "sample 0"},
      {"no_strides", "outputs are its own"},
      {"write_input", "outputs are its own"},
      {"alias_input", "outputs are its own"},
      {"alias_last", "two calls agree"},
      {"nondeterministic", "two calls agree"},
      {"stale_save", "save, load, run"},
      {"save_fail", "save, load, run"},
      {"leak", "no growth"},
  };
  for (const auto& [fault, check] : found_by) {
    CAPTURE(fault);
    bool found = false;
    for (const ConformanceResult& r : run(one(affine({{"fault", fault}})))) {
      if (r.name.starts_with(check) && !r.passed && !r.skipped) found = true;
    }
    CHECK(found);
  }
}

TEST_CASE_FIXTURE(ConformanceFixture,
                  "Conformance: without a model, what needs one is skipped and said") {
  const auto results = run({});
  CHECK(failures(results) == "");
  CHECK(results.back().skipped);
}

TEST_CASE_FIXTURE(ConformanceFixture, "Conformance: a file that is no plugin fails at once") {
  const auto path = folder.path() / "hasten_text.so";
  std::ofstream(path) << "text";
  const BackendEntry entry{.name = "text", .library = path, .command = {}, .describe = {}};
  const auto results = run_conformance(spawner, entry, {}, {.work_dir = folder.path()});
  REQUIRE(results.size() == 1);
  CHECK(!results[0].passed);
}

TEST_CASE("check_description: unknown members and types are refused by name") {
  const auto checked = [](const char* text) { return check_description(*Json::parse(text)); };
  CHECK(checked(R"({"title":"t","formats":["onnx"],"options":[]})"));
  CHECK(says(checked(R"({"title":"t","formats":["onnx"],"colour":1})").error(), "colour"));
  CHECK(!checked(R"({"title":"t","formats":[]})"));
  CHECK(!checked(R"({"formats":["onnx"]})"));
  CHECK(says(
      checked(R"({"title":"t","formats":["a"],"options":[{"name":"n","type":"text","help":"h"}]})")
          .error(),
      "text"));
  CHECK(!checked(
      R"({"title":"t","formats":["a"],"options":[{"name":"a=b","type":"int","help":"h"}]})"));
}

TEST_CASE("check_candidates: roles, option names and one baseline") {
  const Json description = *Json::parse(R"({"options":[{"name":"threads"}]})");
  const auto checked = [&](const char* text) {
    return check_candidates(*Json::parse(text), description);
  };
  CHECK(
      checked(R"([{"role":"baseline","config":{}},{"role":"default","config":{"threads":"1"}}])"));
  CHECK(!checked(R"([{"role":"best","config":{}}])"));
  CHECK(!checked(R"([{"role":"default","config":{"thread":"1"}}])"));
  CHECK(!checked(R"([{"role":"default","config":{"threads":1}}])"));
  CHECK(!checked(R"([{"role":"baseline","config":{}},{"role":"baseline","config":{}}])"));
}

}  // namespace
}  // namespace hasten
