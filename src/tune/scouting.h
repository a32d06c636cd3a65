// SPDX-License-Identifier: Apache-2.0
// What each backend is, whether it can work here and what it would try on a model:
// asked in one short-lived child per backend, all at the same time, so that a
// backend that crashes or hangs while it looks around is a reason like any other.
#pragma once

#include <hasten/result.h>

#include "backend/registry.h"
#include "base/child_process.h"
#include "base/json.h"
#include "model/model.h"
#include "model/signature.h"
#include "record/candidate.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace hasten {

struct Proposal {
  std::string role;  // "baseline", "oracle", "default", "extra"; see plugin.h.
  Candidate candidate;
};

struct Scouted {
  BackendEntry entry;
  Json describe;
  Json facts;
  std::optional<Error> unavailable;            // Why it cannot work here.
  std::optional<Error> unsupported;            // Why it has nothing to try on the model.
  std::optional<Result<Signature>> signature;  // Of the model; none: not its format.
  std::vector<Proposal> proposals;             // For the model.

  std::string library_version() const;
  std::vector<std::string> formats() const;  // That it takes, best first.
  bool takes(const std::string& format) const;
  const Proposal* with_role(std::string_view role) const;
  // The options that are for a compiler rather than for the backend itself.
  std::map<std::string, std::string> compile_options(const Candidate& candidate) const;
  Candidate without_compile_options(const Candidate& candidate) const;
  // An unknown key or an impossible value, told before anything is built.
  Status check_config(const Candidate& candidate) const;
};

struct ScoutOptions {
  std::filesystem::path work_dir;
  int threads = 1;
  std::chrono::nanoseconds timeout{std::chrono::seconds(60)};
  // The backends that the user named: the others are not waited for much longer. Empty: all.
  std::vector<std::string> wanted{};
  std::function<void(const std::string& names)> slow{};  // Who keeps everybody waiting.
  std::stop_token stop{};
};

// In the order of `entries`.
std::vector<Scouted> scout(Spawner& spawner, std::span<const BackendEntry> entries,
                           const Model* model, const ScoutOptions& options);

// The one that runs files of this format as they are: what the others are compared with.
Result<const Scouted*> baseline_backend(std::span<const Scouted> scouted,
                                        const std::string& format);

// The signature by the first backend that could read the file. The error lists why
// each one that should have could not.
Result<Signature> signature_of(const Model& model, std::span<const Scouted> scouted);

}  // namespace hasten
