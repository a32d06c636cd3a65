// SPDX-License-Identifier: Apache-2.0
// A backend in a child process: the host's side. The protocol is in protocol.md
// beside this file; worker_main.cc is the child for libraries, python/hasten/worker.py
// the one for eager PyTorch.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "backend/registry.h"
#include "base/child_process.h"
#include "base/json.h"
#include "record/candidate.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

struct WorkerOptions {
  BackendEntry backend;
  std::filesystem::path work_dir;  // Log, temporary files, scratch; must exist.
  int threads = 1;                 // CPUs it may use.
  std::map<std::string, std::string> environment{};
  std::chrono::nanoseconds start_timeout{std::chrono::seconds(60)};
  uint64_t memory_limit_bytes = 0;
  std::stop_token stop{};
  std::filesystem::path folder{};  // Its working folder; empty: work_dir.
};

// What the child saw when it called the model twice; see check/.
struct CallAudit {
  std::vector<size_t> written_inputs;              // Inputs whose bytes changed during the call.
  std::vector<std::pair<size_t, size_t>> aliases;  // Output i shares memory with input j.
  bool first_result_changed = false;               // Outputs of call 1 changed during call 2.
};

struct CallResult {
  std::vector<Tensor> outputs;  // Copies; valid for as long as they live.
  std::chrono::nanoseconds duration{0};
};

// One child with one backend; at most one candidate built in it. Every call has a
// limit: kTimedOut, kOutOfMemory, kCrashed (signal's name and the end of its stderr) or
// kCancelled end the child, and every later call gives the same error.
// Used from one thread at a time.
class Worker {
 public:
  static Result<Worker> start(Spawner& spawner, WorkerOptions options);
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  ~Worker();  // Kills the child.

  const std::string& backend() const;
  Result<Json> describe(std::chrono::nanoseconds timeout);
  Result<Json> probe(std::chrono::nanoseconds timeout);
  // With a `graph`, also what only a call can tell.
  Result<Json> inspect(const std::filesystem::path& model, const std::string& format,
                       std::chrono::nanoseconds timeout, const Json& graph = {});
  Result<Json> candidates(const std::filesystem::path& model, const std::string& format,
                          std::chrono::nanoseconds timeout);

  Status build(const std::filesystem::path& model, const std::string& format, const Json& graph,
               const Candidate& candidate, std::chrono::nanoseconds timeout);
  Status save(const std::filesystem::path& dir, std::chrono::nanoseconds timeout);
  Status load(const std::filesystem::path& dir, std::chrono::nanoseconds timeout);

  // Puts inputs into `slot` of the child (strides are kept), for the calls below.
  Status set_inputs(size_t slot, std::span<const Tensor> inputs, std::chrono::nanoseconds timeout);
  Result<CallResult> run(size_t slot, std::chrono::nanoseconds timeout);
  // Call with `slot`, then with `other`, watching memory.
  Result<CallAudit> audit(size_t slot, size_t other, std::chrono::nanoseconds timeout);
  // Calls for about `budget`, at least one; how long each took, in ns. With
  // `fresh_inputs` each call gets its own copy, made outside the timer.
  Result<std::vector<int64_t>> turn(size_t slot, std::chrono::nanoseconds budget, bool fresh_inputs,
                                    std::chrono::nanoseconds timeout);
  Result<uint64_t> peak_memory_bytes();
  // One check of the conformance suite, made inside the child; see conformance.h.
  Result<Json> self_test(const Json& request, std::chrono::nanoseconds timeout);

  void stop();  // SIGSTOP; any call resumes first.
  void resume();
  bool alive() const;
  int pid() const;  // It leads its process group; it starts no processes while it takes turns.
  void shut_down();  // Ends the child in order; for memory and files.

 private:
  struct Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// `hasten worker LIBRARY`: serves one library over fd 3 (messages), 4 (tensors in),
// 5 (tensors out) until the host goes away. Returns its exit code.
int run_worker(const std::filesystem::path& library, int threads);

}  // namespace hasten
