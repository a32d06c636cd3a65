// SPDX-License-Identifier: Apache-2.0
// What a worker does to its host when everything goes wrong: nothing.
#include <thread>

#include "worker_fixture.h"

namespace hasten {
namespace {

using std::chrono::milliseconds;

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a failed build is an error of the backend, and the worker lives") {
  Worker worker = start();
  const Status status = build(worker, {{"fault", "build_fail"}});
  REQUIRE(!status);
  CHECK(status.error().code == Code::kBuildFailed);
  CHECK(worker.alive());
  CHECK(build(worker));
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a crash in build names the signal, and every later call repeats it") {
  Worker worker = start();
  const Status status = build(worker, {{"fault", "build_crash"}});
  REQUIRE(!status);
  CHECK(status.error().code == Code::kCrashed);
  CHECK(says(status.error(), "SIGSEGV"));
  CHECK(says(status.error(), "build"));
  CHECK(!worker.alive());
  auto later = worker.run(0, kLong);
  REQUIRE(!later);
  CHECK(later.error().message == status.error().message);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: abort and exit in build are crashes") {
  for (const auto& [fault, sign] :
       std::map<std::string, std::string>{{"abort", "SIGABRT"}, {"exit", "exit code 3"}}) {
    CAPTURE(fault);
    Worker worker = start();
    const Status status = build(worker, {{"fault", fault}});
    REQUIRE(!status);
    CHECK(status.error().code == Code::kCrashed);
    CHECK(says(status.error(), sign));
  }
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a crash in run is a crash, the first calls were fine") {
  Worker worker = ready({{"fault", "run_crash"}, {"after_calls", "2"}});
  CHECK(worker.run(0, kLong).has_value());
  CHECK(worker.run(0, kLong).has_value());
  auto result = worker.run(0, kLong);
  REQUIRE(!result);
  CHECK(result.error().code == Code::kCrashed);
  CHECK(says(result.error(), "SIGSEGV"));
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a hang ends at the limit, whatever signals the child ignores") {
  for (const char* fault : {"build_hang", "build_hang_term"}) {
    CAPTURE(fault);
    Worker worker = start();
    const Status status = worker.build(model(), "fake", Json::object(),
                                       {"fake", {{"fault", fault}}}, milliseconds(300));
    REQUIRE(!status);
    CHECK(status.error().code == Code::kTimedOut);
    CHECK(!worker.alive());
  }
  for (const char* fault : {"run_hang", "run_hang_term"}) {
    CAPTURE(fault);
    Worker worker = ready({{"fault", fault}});
    auto result = worker.turn(0, milliseconds(1), false, milliseconds(300));
    REQUIRE(!result);
    CHECK(result.error().code == Code::kTimedOut);
  }
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: memory beyond the limit ends the child") {
  for (const char* fault : {"build_grow", "run_grow"}) {
    CAPTURE(fault);
    WorkerOptions o = options();
    o.memory_limit_bytes = 200u << 20;
    Worker worker = start(o);
    Status status = build(worker, {{"fault", fault}});
    if (status) {
      REQUIRE(worker.set_inputs(0, inputs({1, 2, 3}, {1, 3}), kLong));
      auto result = worker.run(0, kLong);
      REQUIRE(!result);
      status = result.error();
    }
    REQUIRE(!status);
    CHECK(status.error().code == Code::kOutOfMemory);
    CHECK(says(status.error(), "limit"));
    CHECK(!worker.alive());
  }
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a build beyond the memory limit fails however quick it is") {
  WorkerOptions o = options();
  o.memory_limit_bytes = 1'000'000;  // Less than the program itself.
  auto worker = Worker::start(spawner, o);  // On a slow day it is seen here.
  const Status status = worker ? build(*worker) : worker.error();
  REQUIRE(!status);
  CHECK(status.error().code == Code::kOutOfMemory);
  CHECK(says(status.error(), "more than the limit of 1.0 MB"));
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a stop request ends a build that would take for ever") {
  std::stop_source source;
  WorkerOptions o = options();
  o.stop = source.get_token();
  Worker worker = start(o);
  std::jthread cancel([&] { source.request_stop(); });
  const Status status = build(worker, {{"fault", "build_hang_term"}});
  REQUIRE(!status);
  CHECK(status.error().code == Code::kCancelled);
  CHECK(!worker.alive());
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a failed run, save or load leaves it alive") {
  Worker worker = ready({{"fault", "run_fail"}});
  auto result = worker.run(0, kLong);
  REQUIRE(!result);
  CHECK(result.error().code == Code::kRunFailed);
  CHECK(!worker.load(folder.path() / "nowhere", kLong));
  CHECK(worker.alive());

  Worker saver = ready({{"fault", "save_fail"}});
  CHECK(!saver.save(folder.path() / "s1", kLong));
  Worker loader = ready({{"fault", "load_fail"}});
  REQUIRE(loader.save(folder.path() / "s2", kLong));
  CHECK(!loader.load(folder.path() / "s2", kLong));
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: requests in the wrong order are the caller's mistake") {
  Worker worker = start();
  for (const Status& status : {worker.save(folder.path() / "x", kLong),
                               [&]() -> Status { return worker.run(0, kLong).error(); }(),
                               [&]() -> Status { return worker.audit(0, 1, kLong).error(); }()}) {
    REQUIRE(!status);
    CHECK(status.error().code == Code::kInvalidArgument);
  }
  REQUIRE(build(worker));
  CHECK(worker.run(5, kLong).error().code == Code::kInvalidArgument);
}

TEST_CASE_FIXTURE(WorkerFixture, "Worker: a probe that crashes, hangs or refuses is a reason") {
  const auto probed = [&](const char* how, std::chrono::nanoseconds limit) {
    WorkerOptions o = options();
    o.environment["HASTEN_FAKE_PROBE"] = how;
    Worker worker = start(o);
    auto facts = worker.probe(limit);
    REQUIRE(!facts);
    return facts.error();
  };
  CHECK(probed("crash", kLong).code == Code::kCrashed);
  CHECK(probed("hang", milliseconds(300)).code == Code::kTimedOut);
  const Error refused = probed("unavailable", kLong);
  CHECK(refused.code == Code::kUnavailable);
  CHECK(refused.hint == "unset HASTEN_FAKE_PROBE");
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "Worker: a library that cannot be loaded is unavailable, with the reason") {
  WorkerOptions o = options();
  o.backend.library = folder.path() / "hasten_gone.so";
  auto worker = Worker::start(spawner, o);
  REQUIRE(!worker);
  CHECK(worker.error().code == Code::kUnavailable);
  CHECK(says(worker.error(), "hasten_gone.so"));
}

// A child of our own making, to say anything to the host.
struct LiarFixture : WorkerFixture {
  Result<Worker> liar(const std::string& body, std::chrono::nanoseconds limit = kLong,
                      uint64_t memory_limit = 0) {
    const auto script = folder.path() / "liar.py";
    std::ofstream(script) << R"(
import json, os, socket, struct, sys, time
s = socket.socket(fileno=3)
def raw(b): s.sendall(b)
def send(m):
    b = json.dumps(m).encode(); raw(struct.pack("<I", len(b)) + b)
def hello(): send({"protocol": 1, "backend": "liar", "version": "1", "pid": 1})
def read():
    n = struct.unpack("<I", s.recv(4))[0]
    while n > 0: n -= len(s.recv(n))
)" << body;
    WorkerOptions o = options();
    o.backend = {
        .name = "liar", .library = {}, .command = {"{python}", script.string()}, .describe = {}};
    o.start_timeout = limit;
    o.memory_limit_bytes = memory_limit;
    return Worker::start(spawner, o);
  }
};

TEST_CASE_FIXTURE(LiarFixture, "Worker: a start without a true hello fails in time") {
  CHECK(liar("sys.exit(4)").error().code == Code::kCrashed);
  CHECK(liar("time.sleep(600)", milliseconds(300)).error().code == Code::kTimedOut);
  CHECK(liar("send({'protocol': 2})").error().code == Code::kCrashed);
  CHECK(says(liar("send({'protocol': 1, 'backend': 'other'})").error(), "it is 'other'"));
  CHECK(liar("raw(b'HTTP/1.1 200 OK')").error().code == Code::kCrashed);
  CHECK(liar("raw(b'\\x05\\0\\0\\0{bad}'); time.sleep(600)").error().code == Code::kCrashed);
  const Error told =
      liar("send({'error': {'code': 'unavailable', 'message': 'no torch'}}); read()").error();
  CHECK(told.code == Code::kUnavailable);
  CHECK(told.message == "no torch");
}

TEST_CASE_FIXTURE(LiarFixture, "Worker: the last lines of a dying child are in the message") {
  const auto worker = liar("print('Traceback'); print('ImportError: no torch'); sys.exit(1)");
  REQUIRE(!worker);
  CHECK(says(worker.error(), "ImportError: no torch"));
  CHECK(says(worker.error(), "exit code 1"));
}

TEST_CASE_FIXTURE(LiarFixture,
                  "Worker: killed from outside, it says that memory may be the cause") {
  auto worker = liar("hello(); read(); os.kill(os.getpid(), 9)");
  REQUIRE(worker);
  auto result = worker->run(0, kLong);
  REQUIRE(!result);
  CHECK(result.error().code == Code::kCrashed);
  CHECK(says(result.error(), "SIGKILL"));
  CHECK(result.error().hint.find("out of memory") != std::string::npos);
}

TEST_CASE_FIXTURE(LiarFixture, "Worker: temporary files of a killed one go with its folder") {
  {
    auto worker = liar(R"(
import tempfile
open("kept", "w").write(tempfile.mkdtemp())
hello()
time.sleep(600)
)");
    REQUIRE(worker);
  }
  const auto kept = read_file(folder.path() / "kept");
  REQUIRE(kept);
  CHECK(std::filesystem::exists(*kept));
  CHECK(kept->starts_with(folder.path().string() + "/"));
}

TEST_CASE_FIXTURE(LiarFixture,
                  "Worker: memory beyond the limit ends the child before a turn, never in one") {
  // Takes the memory in its first turn, and writes down each turn that it gets.
  auto worker = liar(R"(
hello()
hoard, turns = [], open("turns", "wb", buffering=0)
while True:
    read()
    turns.write(b".")
    hoard = hoard or bytearray(b"x") * 120_000_000
    send({"durations_ns": [1]})
)",
                     kLong, 100'000'000);
  REQUIRE(worker);
  size_t answered = 0;
  auto turn = worker->turn(0, milliseconds(1), false, kLong);
  for (; turn; turn = worker->turn(0, milliseconds(1), false, kLong)) ++answered;
  CHECK(turn.error().code == Code::kOutOfMemory);
  CHECK(says(turn.error(), "more than the limit of 100 MB"));
  CHECK(read_file(folder.path() / "turns")->size() == answered);
}

TEST_CASE_FIXTURE(LiarFixture,
                  "Worker: an answer that makes no sense ends the child, not the host") {
  for (const char* answer : {
           "send({})",
           "send({'outputs': [{'dtype':'float32','shape':[9],'offset':0,'nbytes':36}]})",
           "send({'outputs': "
           "[{'dtype':'float32','shape':[1<<40],'strides':[0],'offset':0,'nbytes':4}]})",
           "os.ftruncate(5, 1 << 40); send({'outputs': "
           "[{'dtype':'float32','shape':[1<<38],'offset':0,'nbytes':1<<40}]})",
           "raw(b'\\xff\\xff\\xff\\xff')",
           "raw(b'\\x02\\0\\0\\0[]')",
           "s.close()",
       }) {
    CAPTURE(answer);
    auto worker =
        liar(std::string("hello(); read(); os.ftruncate(5, 8)\n") + answer + "\ntime.sleep(600)\n");
    REQUIRE(worker);
    auto result = worker->turn(0, milliseconds(1), false, kLong);
    CHECK(!result);
    CHECK(!worker->alive());
    auto again =
        liar(std::string("hello(); read(); os.ftruncate(5, 8)\n") + answer + "\ntime.sleep(600)\n");
    REQUIRE(again);
    auto run = again->run(0, kLong);
    CHECK(!run);
    // A model that gives nothing is of no use, but its worker keeps to the protocol.
    CHECK(again->alive() == (std::string(answer) == "send({})"));
  }
}

TEST_CASE_FIXTURE(LiarFixture, "Worker: outputs beyond the memory limit end the child") {
  auto worker = liar(R"(
hello(); read()
for _ in range(120): os.write(5, bytes(1_000_000))
send({"outputs": [{"dtype": "uint8", "shape": [120_000_000], "offset": 0, "nbytes": 120_000_000}]})
time.sleep(600)
)",
                     kLong, 100'000'000);
  REQUIRE(worker);
  auto result = worker->run(0, kLong);
  REQUIRE(!result);
  CHECK(result.error().code == Code::kOutOfMemory);
  CHECK(says(result.error(), "gave outputs of 120 MB, more than the limit of 100 MB"));
  CHECK(!worker->alive());
}

TEST_CASE_FIXTURE(LiarFixture,
                  "Worker: a child that neither reads nor answers cannot block the host") {
  auto worker = liar("hello(); time.sleep(600)");
  REQUIRE(worker);
  Json large = Json::object({{"check", std::string(8u << 20, 'x')}});
  auto reply = worker->self_test(large, milliseconds(300));
  REQUIRE(!reply);
  CHECK(reply.error().code == Code::kTimedOut);
}

}  // namespace
}  // namespace hasten
