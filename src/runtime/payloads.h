// SPDX-License-Identifier: Apache-2.0
// The payloads of an artifact, each loaded when it is first needed.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/library.h"
#include "base/files.h"
#include "store/artifact.h"

namespace hasten {

// What a payload is loaded with.
struct PayloadHost {
  std::function<Result<BackendLibrary>(const std::string& backend)> library;
  std::vector<std::string> instruction_sets;  // Of this CPU.
  int threads = 1;
  bool verify = true;
};

// A payload that can run.
class LoadedPayload {
 public:
  LoadedPayload(TemporaryFolder folder, Executable executable, bool concurrent);
  size_t n_inputs() const { return executable_.n_inputs(); }
  size_t n_outputs() const { return executable_.n_outputs(); }
  // From any thread; one after the other where the backend asks for that.
  Status run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const;

 private:
  TemporaryFolder folder_;  // Before the executable: engines map the files in it.
  Executable executable_;
  bool concurrent_;
  mutable std::mutex mutex_;
};

class Payloads {
 public:
  Payloads(ArtifactFile file, PayloadHost host);

  const Manifest& manifest() const { return file_.manifest(); }
  size_t index_of(const std::string& name) const;  // A bug if there is none.

  // Loads it if nobody has. NULL when it cannot run here: then reason() says why. An error
  // when the artifact itself is damaged or cannot be unpacked. From any thread; without a
  // lock and an allocation once it is loaded.
  Result<const LoadedPayload*> get(size_t index) const;
  std::string reason(size_t index) const;
  // What a reader should know: payloads that gave way, libraries of another version. The
  // reference stays valid; a later call may give a longer list.
  const std::vector<std::string>& warnings() const { return *warnings_now_.load(); }

 private:
  struct Slot {
    std::atomic<const LoadedPayload*> loaded{nullptr};
    std::atomic<bool> failed{false};
    std::unique_ptr<LoadedPayload> owner;
    std::optional<Error> reason;
  };

  Result<const LoadedPayload*> load(size_t index) const;
  // The outer failure is of the artifact, the inner one of this payload on this machine.
  Result<Result<std::unique_ptr<LoadedPayload>>> prepare(const Payload& payload) const;
  Status check_arity(const Payload& payload, const LoadedPayload& loaded) const;
  void compare_version(const Payload& payload, const BackendLibrary& library) const;
  void warn(std::string text) const;

  ArtifactFile file_;
  PayloadHost host_;
  mutable std::mutex mutex_;  // All below, but for the atomics.
  mutable std::vector<Slot> slots_;
  // Each warning makes a new list, and the old ones are kept: a reader needs no lock.
  mutable std::vector<std::unique_ptr<const std::vector<std::string>>> warnings_;
  mutable std::atomic<const std::vector<std::string>*> warnings_now_;
};

}  // namespace hasten
