// SPDX-License-Identifier: Apache-2.0
// The checks of the conformance suite that need the plugin's own table: they run in
// the worker, where a crash is a result. conformance.cc asks for them by name.
#pragma once

#include <hasten/result.h>

#include "backend/input_slot.h"
#include "backend/library.h"
#include "base/json.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hasten {

// What the plugin made, without the host's own checks around it.
class RawExecutable {
 public:
  RawExecutable(const hasten_backend_api& api, hasten_executable* raw) : api_(&api), raw_(raw) {}
  RawExecutable(RawExecutable&& other) noexcept
      : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  RawExecutable& operator=(RawExecutable&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~RawExecutable() { api_->destroy(raw_); }
  hasten_executable* get() const { return raw_; }

 private:
  const hasten_backend_api* api_;
  hasten_executable* raw_;
};

class PluginChecks {
 public:
  PluginChecks(const BackendLibrary& library, int threads) : library_(library), threads_(threads) {}

  // {"check": NAME, "build": {"model","format","graph","config","work_dir"}, "tolerance": [abs,
  // rel]}
  // -> {"passed": bool, "detail": TEXT}, or {"skipped": true, "detail": TEXT} where the check
  // does not apply. `slot` has the inputs, for the checks that run; else null.
  Result<Json> run(const Json& request, InputSlot* slot);

 private:
  using Outcome = Result<Json>;
  Outcome table();
  Outcome foreign_abi(const Json& request);
  Outcome destroy_null();
  Outcome utf8();
  Outcome unknown_option(const Json& request);
  Outcome bad_values(const Json& request);
  Outcome outputs(const Json& request, InputSlot& slot);
  Outcome repeat(const Json& request, InputSlot& slot);
  Outcome save_load(const Json& request, InputSlot& slot);
  Outcome wrong_arguments(const Json& request, InputSlot& slot);
  Outcome layouts(const Json& request, InputSlot& slot);
  Outcome empty(const Json& request, InputSlot& slot);
  Outcome outlives(const Json& request, InputSlot& slot);
  Outcome concurrent(const Json& request, InputSlot& slot);
  Outcome memory(const Json& request, InputSlot& slot);

  struct Answer {
    hasten_code code = HASTEN_OK;
    std::string text;
    std::vector<Tensor> outputs;
  };
  Result<RawExecutable> fresh_build(const Json& build, const Json& config) const;
  Result<hasten_executable*> built(const Json& request);  // Built once, kept for later checks.
  Result<Answer> call(hasten_executable* raw, std::span<const DLTensor> inputs) const;
  Result<std::vector<Tensor>> right_answer(hasten_executable* raw, InputSlot& slot) const;

  BackendLibrary library_;
  int threads_;
  std::optional<RawExecutable> executable_;
  std::string built_from_;
};

}  // namespace hasten
