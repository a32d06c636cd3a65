// SPDX-License-Identifier: Apache-2.0
#include "tune/runnable.h"

#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "model/model.h"
#include "record/environment.h"
#include "tune/scouting.h"

namespace hasten {
namespace {

Result<Worker> start(Spawner& spawner, const BackendEntry& entry, const RunnableOptions& options,
                     const std::string& purpose) {
  WorkerOptions worker;
  worker.backend = entry;
  worker.work_dir = options.work_dir / purpose;
  HASTEN_TRY_STATUS(make_folder(worker.work_dir));
  worker.threads = options.threads > 0 ? options.threads : usable_cpus();
  worker.stop = options.stop;
  return Worker::start(spawner, std::move(worker));
}

Result<Candidate> candidate_for(const Model& model, const std::vector<Scouted>& scouted,
                                const std::string& wanted) {
  if (!wanted.empty()) return Candidate::parse(wanted);
  HASTEN_TRY(const Scouted* backend, baseline_backend(scouted, model.format));
  return backend->with_role("baseline")->candidate;
}

Result<Runnable> open_model_file(Spawner& spawner, const Model& model,
                                 const RunnableOptions& options) {
  HASTEN_TRY(const Registry registry, Registry::scan(options.plugins));
  std::vector<std::string> wanted;
  if (const auto candidate = Candidate::parse(options.backend)) wanted = {candidate->backend};
  const std::vector<Scouted> scouted =
      scout(spawner, registry.entries(), &model,
            {.work_dir = options.work_dir,
             .threads = usable_cpus(),
             .wanted = std::move(wanted),
             .stop = options.stop});
  HASTEN_TRY(Signature signature, signature_of(model, scouted));
  HASTEN_TRY(const Candidate candidate, candidate_for(model, scouted, options.backend));
  HASTEN_TRY(const BackendEntry entry, registry.find(candidate.backend));
  for (const Scouted& backend : scouted) {
    if (backend.entry.name != entry.name) continue;
    if (backend.unavailable) return Error(*backend.unavailable).within(entry.name);
    HASTEN_TRY_STATUS(backend.check_config(candidate));
    if (!backend.takes(model.format)) {
      return Error{Code::kInvalidArgument,
                   format("{} does not take {} as it is", entry.name, format_title(model.format)),
                   "hasten tune converts; run the artifact that it writes"};
    }
  }
  HASTEN_TRY(Worker worker, start(spawner, entry, options, "worker"));
  // Only where it is needed: a graph also narrows what a build takes.
  Json graph = Json::object();
  if (signature.outputs.empty() && options.graph_of) {
    HASTEN_TRY(const GraphSpec spec, options.graph_of(signature));
    graph = spec.to_json();
    const Result<Json> told = worker.inspect(model.path, model.format, options.timeout, graph);
    if (told) {
      HASTEN_TRY(signature, Signature::from_json(*told));
    }
  }
  HASTEN_TRY_STATUS(worker.build(model.path, model.format, graph, candidate, options.timeout));
  return Runnable{.worker = std::move(worker),
                  .label = candidate.label(),
                  .signature = std::move(signature),
                  .proofs = {},
                  .graph = std::nullopt,
                  .warnings = {}};
}

Result<Worker> load_payload(Spawner& spawner, const BackendEntry& entry,
                            const std::filesystem::path& folder, const RunnableOptions& options) {
  HASTEN_TRY(Worker worker, start(spawner, entry, options, "worker"));
  HASTEN_TRY_STATUS(worker.load(folder, options.timeout));
  return worker;
}

// As Payloads::prepare() in a child: the outer failure is of the artifact, the inner one of
// this payload on this machine.
Result<Result<Worker>> open_payload(Spawner& spawner, const ArtifactFile& artifact,
                                    const Payload& payload, const RunnableOptions& options) {
  if (Status suits = check_cpu(payload, Environment::of_this_machine().instruction_sets); !suits) {
    return Result<Worker>(std::move(suits).error());
  }
  HASTEN_TRY(const Registry registry, Registry::scan(options.plugins));
  Result<BackendEntry> entry = registry.find(payload.candidate.backend);
  if (!entry) return Result<Worker>(std::move(entry).error());
  const std::filesystem::path folder = options.work_dir / payload.name;
  HASTEN_TRY_STATUS(make_folder(folder));
  HASTEN_TRY_STATUS(artifact.extract_payload(payload.name, folder));
  return load_payload(spawner, *entry, folder, options);
}

// A damaged report must not decide how much memory is taken.
Result<int64_t> chosen_batch_size(const Manifest& manifest) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t size = manifest.report["winner"]["selected_batch_size"].as_int(1);
  if (size >= 1 && size <= kMost) return size;
  return Error{Code::kInvalidArgument, format("its report chooses the batch size {}", size),
               "the artifact is damaged or was not written by hasten"};
}

Result<Runnable> open_artifact(Spawner& spawner, const Model& file,
                               const RunnableOptions& options) {
  HASTEN_TRY(const ArtifactFile artifact, ArtifactFile::open(file.path));
  const Manifest& manifest = artifact.manifest();
  const ArtifactGraph& graph = manifest.graphs.front();
  std::vector<std::string> reasons;
  for (const Route& route : graph.routes) {
    for (const Payload& payload : manifest.payloads) {
      if (payload.name != route.payload) continue;
      HASTEN_TRY(Result<Worker> worker, open_payload(spawner, artifact, payload, options));
      if (!worker) {
        reasons.push_back(payload.candidate.label() + ": " + worker.error().message);
        continue;
      }
      HASTEN_TRY(std::vector<ProofSample> proofs, artifact.proofs());
      const Result<int64_t> size = chosen_batch_size(manifest);
      if (!size) return Error(size.error()).within(file.path.string());
      return Runnable{
          .worker = std::move(*worker),
          .label = payload.candidate.label(),
          .signature = signature_of(graph.spec),
          .proofs = std::move(proofs),
          .graph = graph.spec,
          .chosen_batch_size = *size,
          .warnings = std::move(reasons)};
    }
  }
  return Error{Code::kUnavailable,
               format("{}: no payload runs here: {}", file.path.string(), join(reasons, "; ")),
               "hasten backends shows what is missing"};
}

}  // namespace

Signature signature_of(const GraphSpec& graph) {
  const auto values = [](const std::vector<TensorSpec>& specs) {
    std::vector<ValueInfo> infos;
    for (const TensorSpec& spec : specs) {
      ValueInfo info;
      info.name = spec.name;
      info.dtype = spec.dtype;
      info.shape.emplace();
      for (const Axis& axis : spec.axes) {
        if (axis.kind == AxisKind::kStatic)
          info.shape->emplace_back(axis.min);
        else
          info.shape->emplace_back(axis.symbol);
      }
      infos.push_back(std::move(info));
    }
    return infos;
  };
  return {.inputs = values(graph.inputs), .outputs = values(graph.outputs)};
}

Result<Runnable> open_runnable(Spawner& spawner, const std::filesystem::path& path,
                               const RunnableOptions& options) {
  HASTEN_TRY(const Model model, open_model(path));
  return model.format == "hasten" ? open_artifact(spawner, model, options)
                                  : open_model_file(spawner, model, options);
}

}  // namespace hasten
