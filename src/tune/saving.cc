// SPDX-License-Identifier: Apache-2.0
#include "tune/saving.h"

#include <map>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "store/artifact.h"

namespace hasten {
namespace {

// Samples travel with the artifact for `hasten verify`; inputs of video models are large.
constexpr uint64_t kMaxProofBytes = 64ull << 20;

struct Packing {
  Manifest manifest;
  std::map<std::string, std::filesystem::path> folders;
  std::vector<ProofSample> proofs;
};

std::string add_payload(Packing& packing, const Candidate& candidate, const std::string& version,
                        const std::filesystem::path& folder,
                        std::vector<std::string> instruction_sets) {
  const std::string name = format("payload/{}", packing.manifest.payloads.size());
  packing.manifest.payloads.push_back({.name = name,
                                       .candidate = candidate,
                                       .library_version = version,
                                       .instruction_sets = std::move(instruction_sets)});
  packing.folders[name] = folder;
  return name;
}

Route route_of(Packing& packing, const Contestant& contestant, const Environment& environment) {
  Route route;
  route.payload = add_payload(
      packing, contestant.backend->without_compile_options(contestant.trial.candidate),
      contestant.trial.version, contestant.payload,
      contestant.machine_specific ? environment.instruction_sets : std::vector<std::string>{});
  route.ranges = contestant.ranges;
  return route;
}

// kUnsupported: the original cannot be saved, because it needs Python.
Result<Route> original_route(Workshop& shop, Packing& packing, Original& original) {
  const std::filesystem::path folder =
      shop.folder / format("graph-{}-original-payload", original.graph.name);
  HASTEN_TRY_STATUS(make_folder(folder));
  HASTEN_TRY(Worker * worker, at_hand(shop, original));
  HASTEN_TRY_STATUS(worker->save(folder, shop.options.build_timeout));
  Route route;
  route.payload =
      add_payload(packing, original.trial.candidate, original.trial.version, folder, {});
  return route;
}

uint64_t bytes_in(std::span<const Tensor> tensors) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

void add_proofs(Packing& packing, const GraphOutcome& outcome, uint64_t& bytes) {
  const Original& original = outcome.original;
  const bool lossy = outcome.choice.trial && outcome.contestants[*outcome.choice.trial].lossy;
  Json tolerances = Json::array();
  for (const OutputTolerance& t : original.tolerances_for(lossy)) {
    tolerances.push(
        Json::object({{"absolute", t.tolerance.absolute}, {"relative", t.tolerance.relative}}));
  }
  for (const CheckCase& one : original.cases) {
    bytes += bytes_in(one.inputs) + bytes_in(one.reference.outputs);
    if (bytes > kMaxProofBytes && !packing.proofs.empty()) return;
    packing.proofs.push_back({.graph = original.graph.name,
                              .what = one.reference.what,
                              .inputs = clones(one.inputs),
                              .outputs = clones(one.reference.outputs),
                              .tolerances = tolerances});
  }
}

// Of those that were proved and run without Python, the one for the most sizes and machines;
// the faster one where they are alike. Null: there is none.
const Contestant* stand_in(const GraphOutcome& outcome) {
  const Contestant* best = nullptr;
  const auto narrow = [](const Contestant& c) {
    return (c.ranges.empty() ? 0 : 2) + (c.machine_specific ? 1 : 0);
  };
  const auto consider = [&](const Contestant& other) {
    const bool proved = other.trial.check && other.trial.check->passed && !other.trial.failure;
    if (!proved || other.lossy) return;
    if (!best || narrow(other) < narrow(*best)) best = &other;
  };
  for (const size_t i : outcome.choice.runners_up) consider(outcome.contestants[i]);
  // Also who gave way in the confirmation: its figures did not stand, its values did.
  for (size_t i = 0; i < outcome.contestants.size(); ++i) {
    if (i != outcome.choice.trial) consider(outcome.contestants[i]);
  }
  return best;
}

// Does `other` answer sizes, or run on machines, that `chosen` does not?
bool reaches_further(const Contestant& other, const Contestant& chosen) {
  return (other.ranges.empty() && !chosen.ranges.empty()) ||
         (!other.machine_specific && chosen.machine_specific);
}

// What answers, in order of preference.
Result<std::vector<Route>> routes_of(Workshop& shop, Packing& packing, GraphOutcome& outcome,
                                     const Environment& environment,
                                     std::vector<std::string>& warnings) {
  std::vector<Route> routes;
  const Choice& choice = outcome.choice;
  if (choice.trial) {
    routes.push_back(route_of(packing, outcome.contestants[*choice.trial], environment));
  }
  Result<Route> original = original_route(shop, packing, outcome.original);
  if (original) {
    routes.push_back(*std::move(original));
    return routes;
  }
  const bool needs_python = original.error().code == Code::kUnsupported;
  const std::string label = outcome.original.trial.candidate.label();
  const std::string why = needs_python ? format("the original ({}) needs Python", label)
                                       : format("the original ({}) could not be saved ({})", label,
                                                original.error().message);
  const Contestant* other = stand_in(outcome);
  if (routes.empty() && !other) {
    return Error{Code::kUnsupported,
                 format("graph {}: {} and no other build was proved, so there is nothing to put "
                        "into an artifact",
                        outcome.original.graph.name, why),
                 "the report says why each candidate failed"};
  }
  if (choice.trial && !needs_python) warnings.push_back(why + ", so it does not stand in");
  if (!other) return routes;
  if (!choice.trial) {
    warnings.push_back(
        format("{}, so the artifact carries {} in its place: the same values, not faster", why,
               other->trial.candidate.label()));
  } else if (!reaches_further(*other, outcome.contestants[*choice.trial])) {
    return routes;
  }
  routes.push_back(route_of(packing, *other, environment));
  return routes;
}

}  // namespace

Status save_artifact(Workshop& shop, const std::filesystem::path& path,
                     std::span<GraphOutcome> graphs, const Environment& environment,
                     const Json& report, std::vector<std::string>& warnings) {
  Packing packing;
  uint64_t proof_bytes = 0;
  for (GraphOutcome& outcome : graphs) {
    ArtifactGraph graph;
    graph.spec = outcome.original.graph;
    HASTEN_TRY(graph.routes, routes_of(shop, packing, outcome, environment, warnings));
    packing.manifest.graphs.push_back(std::move(graph));
    add_proofs(packing, outcome, proof_bytes);
  }
  packing.manifest.report = report;
  return write_artifact(path, std::move(packing.manifest), packing.folders, packing.proofs);
}

}  // namespace hasten
