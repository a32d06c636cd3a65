// SPDX-License-Identifier: Apache-2.0
// What a worker does when nothing goes wrong.
#include <algorithm>
#include <numeric>

#include "worker_fixture.h"

namespace hasten {
namespace {

TEST_CASE_FIXTURE(WorkerFixture, "Worker: it says what its backend is and can do") {
  Worker worker = start();
  CHECK(worker.backend() == "fake");
  CHECK(worker.alive());
  CHECK((*worker.describe(kLong))["formats"].items()[0].as_string() == "fake");
  CHECK((*worker.probe(kLong))["library_version"].as_string() == "1.0");
  CHECK((*worker.inspect(model(), "fake", kLong))["inputs"].items().size() == 1);
  CHECK((*worker.candidates(model(), "fake", kLong)).items()[0]["role"].as_string() == "baseline");
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: built, it computes; its results are copies that live on") {
  std::vector<Tensor> outputs;
  {
    Worker worker = ready();
    auto result = worker.run(0, kLong);
    REQUIRE(result);
    CHECK(result->duration.count() > 0);
    outputs = std::move(result->outputs);
  }
  REQUIRE(outputs.size() == 1);
  CHECK(floats_of(outputs[0]) == std::vector<float>{3, 5, 7, 9, 11, 13});
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: several slots keep their own inputs") {
  Worker worker = ready();
  REQUIRE(worker.set_inputs(7, inputs({10, 20, 30}, {1, 3}), kLong));
  CHECK(floats_of(worker.run(7, kLong)->outputs[0]) == std::vector<float>{21, 41, 61});
  CHECK(floats_of(worker.run(0, kLong)->outputs[0])[0] == 3.0f);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: strided, expanded, reversed and empty inputs arrive by value") {
  Worker worker = start();
  REQUIRE(build(worker));
  std::vector<float> storage = {1, 2, 3, 4, 5, 6};
  const auto give = [&](size_t first, Shape shape, Shape strides) {
    std::vector<Tensor> tensors;
    tensors.push_back(Tensor::view_of(DType::kFloat32, storage.data() + first, std::move(shape),
                                      std::move(strides), nullptr));
    REQUIRE(worker.set_inputs(0, tensors, kLong));
    auto result = worker.run(0, kLong);
    REQUIRE(result);
    return floats_of(result->outputs[0]);
  };
  CHECK(give(0, {2, 3}, {1, 2}) == std::vector<float>{3, 7, 11, 5, 9, 13});
  CHECK(give(1, {2, 3}, {0, 1}) == std::vector<float>{5, 7, 9, 5, 7, 9});
  CHECK(give(5, {1, 3}, {3, -1}) == std::vector<float>{13, 11, 9});
  CHECK(give(0, {0, 3}, {3, 1}).empty());
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: saved by one, loaded by another, it computes the same") {
  const auto dir = folder.path() / "saved";
  {
    Worker worker = ready();
    REQUIRE(worker.save(dir, kLong));
  }
  Worker worker = start();
  REQUIRE(worker.load(dir, kLong));
  REQUIRE(worker.set_inputs(0, inputs({1, 2, 3}, {1, 3}), kLong));
  CHECK(floats_of(worker.run(0, kLong)->outputs[0]) == std::vector<float>{3, 5, 7});
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a turn makes at least one call, and calls until its budget is spent") {
  Worker worker = ready({{"latency_us", "200"}});
  auto one = worker.turn(0, std::chrono::nanoseconds(0), false, kLong);
  REQUIRE(one);
  CHECK(one->size() == 1);
  auto many = worker.turn(0, std::chrono::milliseconds(10), true, kLong);
  REQUIRE(many);
  CHECK(many->size() <= 50);  // 10 ms hold no more calls of 200 us.
  CHECK(*std::min_element(many->begin(), many->end()) >= 200'000);
  CHECK(std::accumulate(many->begin(), many->end(), int64_t{0}) >= 200'000);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a run is always made with pristine inputs") {
  Worker worker = ready({{"fault", "write_input"}});
  const auto first = floats_of(worker.run(0, kLong)->outputs[0]);
  CHECK(floats_of(worker.run(0, kLong)->outputs[0]) == first);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: the audit of an honest backend finds nothing") {
  Worker worker = ready();
  REQUIRE(worker.set_inputs(1, inputs({7, 8, 9}, {1, 3}), kLong));
  auto audit = worker.audit(0, 1, kLong);
  REQUIRE(audit);
  CHECK(audit->written_inputs.empty());
  CHECK(audit->aliases.empty());
  CHECK(!audit->first_result_changed);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: the audit sees written inputs, aliases and changed results") {
  const auto audited = [&](const char* fault) {
    Worker worker = ready({{"fault", fault}});
    REQUIRE(worker.set_inputs(1, inputs({7, 8, 9, 1, 1, 1}, {2, 3}), kLong));
    auto audit = worker.audit(0, 1, kLong);
    REQUIRE(audit);
    return *std::move(audit);
  };
  CHECK(audited("write_input").written_inputs == std::vector<size_t>{0});
  CHECK(audited("alias_input").aliases == std::vector<std::pair<size_t, size_t>>{{0, 0}});
  CHECK(audited("alias_last").first_result_changed);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: stopped, it goes on with the next request") {
  Worker worker = ready();
  worker.stop();
  CHECK(worker.alive());
  CHECK(worker.run(0, kLong).has_value());
  worker.stop();
  worker.resume();
  CHECK(worker.run(0, kLong).has_value());
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: its peak memory is that of the child") {
  Worker worker = ready();
  auto bytes = worker.peak_memory_bytes();
  REQUIRE(bytes);
  CHECK(*bytes > 1'000'000);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: shut down, it is gone and says so") {
  Worker worker = ready();
  worker.stop();
  worker.shut_down();
  CHECK(!worker.alive());
  auto result = worker.run(0, kLong);
  REQUIRE(!result);
  CHECK(result.error().code == Code::kCancelled);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: what a plugin prints goes to the log, not into the protocol") {
  Worker worker = ready({{"fault", "print"}});
  auto result = worker.run(0, kLong);
  REQUIRE(result);
  CHECK(floats_of(result->outputs[0])[0] == 3.0f);
  const auto log = read_file(folder.path() / "worker.log");
  REQUIRE(log);
  CHECK(log->find("durations_ns") != std::string::npos);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: paths with spaces, quotes, dollars and Chinese letters work") {
  const auto odd = folder.path() / "a b'c\"d $x 模型";
  std::filesystem::create_directories(odd);
  WorkerOptions o = options();
  o.work_dir = odd;
  Worker worker = start(o);
  const auto path = odd / "m 模.fake";
  std::filesystem::copy_file(model(), path);
  REQUIRE(worker.build(path, "fake", Json::object(), {"fake", {}}, kLong));
  REQUIRE(worker.save(odd / "sav ed", kLong));
  REQUIRE(worker.load(odd / "sav ed", kLong));
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a backend that is a program is told its threads and packages") {
  WorkerOptions o = options();
  // A shell that answers as a worker would, with what it was given.
  const auto script = folder.path() / "hello.py";
  std::ofstream(script) << R"(
import json, os, socket, struct
s = socket.socket(fileno=3)
def send(m):
    b = json.dumps(m).encode(); s.sendall(struct.pack("<I", len(b)) + b)
send({"protocol": 1, "backend": "prog", "version": "1", "pid": os.getpid()})
s.recv(4)
send({"facts": {"threads": os.environ["HASTEN_THREADS"], "path": os.environ["PYTHONPATH"]}})
s.recv(4096)
)";
  o.backend = {
      .name = "prog", .library = {}, .command = {"{python}", script.string()}, .describe = {}};
  o.threads = 3;
  Worker worker = start(o);
  auto facts = worker.probe(kLong);
  REQUIRE(facts);
  CHECK((*facts)["threads"].as_string() == "3");
  CHECK((*facts)["path"].as_string().starts_with(python_package_folder().string()));
}

}  // namespace
}  // namespace hasten
