// SPDX-License-Identifier: Apache-2.0
#include "runtime/payloads.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"

namespace hasten {
namespace {

// "payload/0 (onnxruntime:threads=2)"
std::string title(const Payload& payload) {
  return format("{} ({})", payload.name, payload.candidate.label());
}

// Does any graph have another route behind this one?
bool has_next(const Manifest& manifest, const Payload& payload) {
  return std::ranges::any_of(manifest.graphs, [&](const ArtifactGraph& graph) {
    const auto route = std::ranges::find(graph.routes, payload.name, &Route::payload);
    return route != graph.routes.end() && std::next(route) != graph.routes.end();
  });
}

}  // namespace

LoadedPayload::LoadedPayload(TemporaryFolder folder, Executable executable, bool concurrent)
    : folder_(std::move(folder)), executable_(std::move(executable)), concurrent_(concurrent) {}

Status LoadedPayload::run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const {
  if (concurrent_) return executable_.run(inputs, outputs);
  const std::lock_guard lock(mutex_);
  return executable_.run(inputs, outputs);
}

Payloads::Payloads(ArtifactFile file, PayloadHost host)
    : file_(std::move(file)), host_(std::move(host)), slots_(file_.manifest().payloads.size()) {
  warnings_.push_back(std::make_unique<const std::vector<std::string>>());
  warnings_now_ = warnings_.back().get();
}

size_t Payloads::index_of(const std::string& name) const {
  const auto found = std::ranges::find(manifest().payloads, name, &Payload::name);
  if (found == manifest().payloads.end()) throw std::logic_error("no payload named " + name);
  return static_cast<size_t>(found - manifest().payloads.begin());
}

Result<const LoadedPayload*> Payloads::get(size_t index) const {
  const Slot& slot = slots_[index];
  if (const LoadedPayload* loaded = slot.loaded.load(std::memory_order_acquire)) return loaded;
  if (slot.failed.load(std::memory_order_acquire)) return nullptr;
  return load(index);
}

std::string Payloads::reason(size_t index) const {
  const std::lock_guard lock(mutex_);
  return slots_[index].reason ? slots_[index].reason->message : "";
}

Result<const LoadedPayload*> Payloads::load(size_t index) const {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[index];
  if (slot.owner) return slot.owner.get();  // Another thread was faster.
  if (slot.failed) return nullptr;
  const Payload& payload = manifest().payloads[index];
  HASTEN_TRY(auto prepared, prepare(payload));
  if (!prepared) {
    slot.reason = std::move(prepared).error().within(title(payload));
    warn(format("{}{}{}", slot.reason->message,
                has_next(manifest(), payload) ? "; the next in the artifact is used" : "",
                slot.reason->hint.empty() ? "" : format(" ({})", slot.reason->hint)));
    slot.failed.store(true, std::memory_order_release);
    return nullptr;
  }
  slot.owner = *std::move(prepared);
  slot.loaded.store(slot.owner.get(), std::memory_order_release);
  return slot.owner.get();
}

Result<Result<std::unique_ptr<LoadedPayload>>> Payloads::prepare(const Payload& payload) const {
  using Inner = Result<std::unique_ptr<LoadedPayload>>;
  if (Status suits = check_cpu(payload, host_.instruction_sets); !suits) {
    return Inner(std::move(suits).error());
  }
  auto library = host_.library(payload.candidate.backend);
  if (!library) return Inner(std::move(library).error());

  HASTEN_TRY(TemporaryFolder folder, TemporaryFolder::create("payload"));
  HASTEN_TRY_STATUS(file_.extract_payload(payload.name, folder.path(), host_.verify));
  auto executable = library->load(folder.path(), host_.threads);
  if (!executable) {
    compare_version(payload, *library);
    return Inner(std::move(executable).error());
  }
  auto loaded = std::make_unique<LoadedPayload>(std::move(folder), *std::move(executable),
                                                library->concurrent_run());
  if (Status fits = check_arity(payload, *loaded); !fits) return Inner(std::move(fits).error());
  compare_version(payload, *library);
  return Inner(std::move(loaded));
}

Status Payloads::check_arity(const Payload& payload, const LoadedPayload& loaded) const {
  for (const ArtifactGraph& graph : manifest().graphs) {
    const bool used = std::ranges::any_of(
        graph.routes, [&](const Route& route) { return route.payload == payload.name; });
    if (!used || (loaded.n_inputs() == graph.spec.inputs.size() &&
                  loaded.n_outputs() == graph.spec.outputs.size())) {
      continue;
    }
    return Error{Code::kInvalidArgument,
                 format("takes {} inputs and gives {} outputs, but graph {} has {} and {}",
                        loaded.n_inputs(), loaded.n_outputs(), graph.spec.name,
                        graph.spec.inputs.size(), graph.spec.outputs.size())};
  }
  return {};
}

void Payloads::compare_version(const Payload& payload, const BackendLibrary& library) const {
  // A probe may fail for what only building needs; then there is nothing to compare.
  const auto facts = library.probe(host_.threads);
  if (!facts || payload.library_version.empty()) return;
  const std::string& here = (*facts)["library_version"].as_string();
  if (here.empty() || here == payload.library_version) return;
  warn(format("{}: was made with version {} of the library, this machine has {}", title(payload),
              payload.library_version, here));
}

void Payloads::warn(std::string text) const {
  std::vector<std::string> longer = *warnings_.back();
  longer.push_back(std::move(text));
  warnings_.push_back(std::make_unique<const std::vector<std::string>>(std::move(longer)));
  warnings_now_ = warnings_.back().get();
}

}  // namespace hasten
