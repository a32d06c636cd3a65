// SPDX-License-Identifier: Apache-2.0
// Compilers as children: what they get, what they may answer, and their limits.
#include "backend/compilers.h"

#include <csignal>

#include "worker_fixture.h"

namespace hasten {
namespace {

struct CompilerFixture : WorkerFixture {
  // A package with one compiler whose module has this body after reading `request`.
  Result<CompileResult> run(const std::string& body, RunLimits limits = {}) {
    const auto package = folder.path() / "package", dir = package / "hasten" / "compilers";
    std::filesystem::create_directories(dir);
    std::ofstream(package / "hasten" / "__init__.py");
    std::ofstream(dir / "__init__.py");
    std::ofstream(dir / "compilers.json")
        << R"([{"name":"a-to-b","from":"a","to":"b","module":"a_to_b","cost":1}])";
    std::ofstream(dir / "a_to_b.py") << R"(
import json, os, sys, time
request = json.load(open(sys.argv[1]))
def result(**fields):
    with open(os.path.join(request["output_dir"], "result.json"), "w") as f: json.dump(fields, f)
)" << body << "\n";
    auto compilers = Compilers::read(package);
    REQUIRE(compilers);
    CompileRequest request{.model = model(),
                           .format = "a",
                           .graph = Json::object({{"name", "0"}}),
                           .samples = folder.path(),
                           .options = {{"opset", "18"}},
                           .work_dir = folder.path() / "work"};
    std::filesystem::create_directories(request.work_dir);
    return compilers->run(spawner, (*compilers->chain("a", "b"))[0], request, limits);
  }
};

TEST_CASE_FIXTURE(CompilerFixture, "Compilers: a step gets the whole request and gives a file") {
  auto result = run(R"(
path = os.path.join(request["output_dir"], "out.b")
open(path, "w").write(request["options"]["opset"])
result(ok=True, path=path, facts={"format": request["format"], "graph": request["graph"]["name"]})
)");
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  CHECK(*read_file(result->path) == "18");
  CHECK(result->facts["format"].as_string() == "a");
  CHECK(result->facts["graph"].as_string() == "0");
  CHECK(result->seconds > 0);
}

TEST_CASE_FIXTURE(CompilerFixture,
                  "Compilers: its own error is the error, and the hint names the log") {
  auto result = run(R"(
print("what torch said")
result(ok=False, code="unsupported", message="operator aten::foo", hint="use opset 20")
sys.exit(1)
)");
  REQUIRE(!result);
  CHECK(result.error().code == Code::kUnsupported);
  CHECK(says(result.error(), "operator aten::foo"));
  CHECK(result.error().hint.starts_with("use opset 20"));
  CHECK(result.error().hint.find("a-to-b.log") != std::string::npos);
  CHECK(read_file(folder.path() / "work" / "a-to-b.log")->find("what torch said") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(CompilerFixture,
                  "Compilers: a crash, an exception and silence are failed builds") {
  auto crashed = run("os.kill(os.getpid(), 11)");
  REQUIRE(!crashed);
  CHECK(crashed.error().code == Code::kCrashed);
  auto raised = run("raise RuntimeError('no luck')");
  REQUIRE(!raised);
  CHECK(raised.error().code == Code::kBuildFailed);
  CHECK(says(raised.error(), "no luck"));
  auto silent = run("pass");
  REQUIRE(!silent);
  CHECK(silent.error().code == Code::kBuildFailed);
  auto lying = run("result(ok=True, path='gone.b', facts={})");
  REQUIRE(!lying);
  CHECK(lying.error().code == Code::kBuildFailed);
}

TEST_CASE_FIXTURE(CompilerFixture,
                  "Compilers: a hang ends at the limit, with what it had started") {
  auto result = run("import subprocess; subprocess.Popen(['sleep', '600']); time.sleep(600)",
                    {.timeout = std::chrono::seconds(1)});
  REQUIRE(!result);
  CHECK(result.error().code == Code::kTimedOut);
}

TEST_CASE_FIXTURE(CompilerFixture,
                  "Compilers: in a host that ignores SIGCHLD the result alone decides") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  auto made = run("open(os.path.join(request['output_dir'], 'x'), 'w')\nresult(ok=True, path='x')");
  auto silent = run("pass");
  std::signal(SIGCHLD, before);
  CHECK_MESSAGE(made, (made ? "" : made.error().message));
  REQUIRE(!silent);
  CHECK(silent.error().code == Code::kBuildFailed);
}

TEST_CASE_FIXTURE(CompilerFixture,
                  "Compilers: the result of an earlier attempt is not taken for this one's") {
  REQUIRE(run("open(os.path.join(request['output_dir'], 'x'), 'w')\nresult(ok=True, path='x')"));
  CHECK(!run("pass"));
}

}  // namespace
}  // namespace hasten
