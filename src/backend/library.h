// SPDX-License-Identifier: Apache-2.0
// One loaded plugin. Never unloaded: its threads and static objects may outlive
// any owner we could name.
#pragma once

#include <hasten/plugin.h>
#include <hasten/result.h>
#include <hasten/tensor.h>

#include "base/json.h"
#include "record/candidate.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hasten {

class Executable;

class BackendLibrary {
 public:
  static Result<BackendLibrary> open(const std::filesystem::path& path);
  static BackendLibrary from_table(const hasten_backend_api& api) { return BackendLibrary(api); }

  std::string_view name() const { return api_->name; }
  std::string_view version() const { return api_->version; }
  bool concurrent_run() const { return (api_->traits & HASTEN_TRAIT_CONCURRENT_RUN) != 0; }
  const hasten_backend_api& api() const { return *api_; }

  Result<Json> describe() const;
  Result<Json> probe(int threads) const;  // The facts, or why it cannot work here.
  Result<Json> inspect(const std::filesystem::path& model, const std::string& format,
                       const Json& graph = {}) const;
  Result<Json> candidates(const std::filesystem::path& model, const std::string& format,
                          int threads) const;
  Result<Executable> build(const std::filesystem::path& model, const std::string& format,
                           const Json& graph, const Candidate& candidate, int threads,
                           const std::filesystem::path& work_dir) const;
  Result<Executable> load(const std::filesystem::path& dir, int threads) const;

 private:
  explicit BackendLibrary(const hasten_backend_api& api) : api_(&api) {}
  const hasten_backend_api* api_;
};

// A built candidate in this process.
class Executable {
 public:
  Executable(const hasten_backend_api& api, hasten_executable* raw);
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  size_t n_inputs() const { return n_inputs_; }
  size_t n_outputs() const { return n_outputs_; }
  // No allocation of our own. Outputs are replaced.
  Status run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const;
  Status save(const std::filesystem::path& dir) const;

 private:
  const hasten_backend_api* api_;
  hasten_executable* raw_;
  size_t n_inputs_ = 0, n_outputs_ = 0;
};

}  // namespace hasten
