// SPDX-License-Identifier: Apache-2.0
#include "store/artifact.h"

#include "base/text.h"
#include "store/manifest_types.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace hasten {
namespace {

Error bad(std::string what) {
  return Error{Code::kInvalidArgument, "the manifest " + std::move(what),
               "the artifact is damaged or was not written by hasten"};
}

Json to_json(const ArtifactGraph& graph) {
  Json routes = Json::array();
  for (const Route& route : graph.routes) {
    Json ranges = Json::object();
    for (const auto& [symbol, range] : route.ranges) {
      ranges.set(symbol, Json::Array{range.first, range.second});
    }
    routes.push(Json::object({{"payload", route.payload}, {"ranges", std::move(ranges)}}));
  }
  return Json::object({{"spec", graph.spec.to_json()}, {"routes", std::move(routes)}});
}

Json to_json(const Payload& payload) {
  Json sets = Json::array();
  for (const std::string& set : payload.instruction_sets) sets.push(set);
  return Json::object({{"name", payload.name},
                       {"backend", payload.candidate.backend},
                       {"config", payload.candidate.config_json()},
                       {"library_version", payload.library_version},
                       {"instruction_sets", std::move(sets)}});
}

Result<Route> route_from_json(const Json& json) {
  Route route;
  route.payload = json["payload"].as_string();
  for (const auto& [symbol, range] : json["ranges"].members()) {
    const Json::Array& ends = range.items();
    if (ends.size() != 2 || ends[0].as_int() > ends[1].as_int()) {
      return bad(format("has the range {} for '{}'", range.dump(), symbol));
    }
    route.ranges[symbol] = {ends[0].as_int(), ends[1].as_int()};
  }
  return route;
}

Result<ArtifactGraph> graph_from_json(const Json& json) {
  ArtifactGraph graph;
  auto spec = GraphSpec::from_json(json["spec"]);
  if (!spec) return bad("is wrong: " + spec.error().message);
  graph.spec = *std::move(spec);
  for (const Json& item : json["routes"].items()) {
    HASTEN_TRY(Route route, route_from_json(item));
    graph.routes.push_back(std::move(route));
  }
  return graph;
}

// A payload's name is a folder in the archive, and becomes one on disk.
bool is_folder_name(const std::string& name) {
  const std::vector<std::string> parts = split(name, '/');
  return !name.empty() && name.find('\0') == std::string::npos &&
         std::ranges::none_of(parts, [](const std::string& part) {
           return part.empty() || part == "." || part == "..";
         });
}

Result<Payload> payload_from_json(const Json& json) {
  Payload payload;
  payload.name = json["name"].as_string();
  if (!is_folder_name(payload.name)) return bad(format("has a payload named '{}'", payload.name));
  payload.candidate = Candidate::from_json(json["backend"], json["config"]);
  if (payload.candidate.backend.empty()) {
    return bad(format("names no backend for '{}'", payload.name));
  }
  payload.library_version = json["library_version"].as_string();
  for (const Json& set : json["instruction_sets"].items()) {
    payload.instruction_sets.push_back(set.as_string());
  }
  return payload;
}

Status check_routes(const Manifest& manifest) {
  std::set<std::string> names;
  for (const Payload& payload : manifest.payloads) {
    if (!names.insert(payload.name).second) {
      return bad(format("has two payloads named '{}'", payload.name));
    }
  }
  if (manifest.graphs.empty()) return bad("has no graphs");
  for (const ArtifactGraph& graph : manifest.graphs) {
    if (graph.routes.empty()) return bad(format("has no routes for graph {}", graph.spec.name));
    for (const Route& route : graph.routes) {
      if (names.contains(route.payload)) continue;
      return bad(
          format("routes graph {} to '{}', which is no payload", graph.spec.name, route.payload));
    }
  }
  return {};
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Status check_cpu(const Payload& payload, const std::vector<std::string>& instruction_sets) {
  std::vector<std::string> missing;
  std::ranges::copy_if(payload.instruction_sets, std::back_inserter(missing),
                       [&](const std::string& set) {
                         return std::ranges::find(instruction_sets, set) == instruction_sets.end();
                       });
  if (missing.empty()) return {};
  return Error{Code::kUnavailable,
               format("was built for a CPU with {}, which this one lacks", join(missing, ", ")),
               "tune again on this machine"};
}

Json Manifest::to_json() const {
  Json graph_list = Json::array(), payload_list = Json::array(), proof_list = Json::array();
  for (const ArtifactGraph& graph : graphs) graph_list.push(hasten::to_json(graph));
  for (const Payload& payload : payloads) payload_list.push(hasten::to_json(payload));
  for (const ProofInfo& proof : proofs) {
    proof_list.push(Json::object(
        {{"graph", proof.graph}, {"what", proof.what}, {"tolerances", proof.tolerances}}));
  }
  Json hashes = Json::object();
  for (const auto& [entry, hash] : sha256) hashes.set(entry, hash);
  return Json::object({{"schema", schema},
                       {"graphs", std::move(graph_list)},
                       {"payloads", std::move(payload_list)},
                       {"proofs", std::move(proof_list)},
                       {"report", report},
                       {"sha256", std::move(hashes)}});
}

Result<Manifest> Manifest::from_json(const Json& json) {
  if (!json["schema"].is_int()) return bad("has no schema number");
  Manifest manifest;
  const int64_t schema = json["schema"].as_int();
  // Before all else: what another version wrote cannot be judged by our rules.
  if (schema < 1 || schema > kArtifactSchema) {
    return Error{
        Code::kUnsupported,
        format("the artifact has schema {}, this hasten reads schema {}", schema, kArtifactSchema),
        "use the hasten that wrote it, a newer one, or tune again"};
  }
  manifest.schema = static_cast<int>(schema);
  if (Status types = check_manifest_types(json); !types) {
    return bad("is wrong: " + types.error().message);
  }
  for (const Json& item : json["graphs"].items()) {
    HASTEN_TRY(ArtifactGraph graph, graph_from_json(item));
    manifest.graphs.push_back(std::move(graph));
  }
  for (const Json& item : json["payloads"].items()) {
    HASTEN_TRY(Payload payload, payload_from_json(item));
    manifest.payloads.push_back(std::move(payload));
  }
  for (const Json& item : json["proofs"].items()) {
    manifest.proofs.push_back(
        {item["graph"].as_string(), item["what"].as_string(), item["tolerances"]});
  }
  HASTEN_TRY_STATUS(check_routes(manifest));
  manifest.report = json["report"];
  for (const auto& [entry, hash] : json["sha256"].members()) {
    if (!is_sha256(hash.as_string())) return bad(format("has no SHA-256 for entry '{}'", entry));
    manifest.sha256[entry] = hash.as_string();
  }
  return manifest;
}

}  // namespace hasten
