// SPDX-License-Identifier: Apache-2.0
#include <hasten/runtime.h>

#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "check/check.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/model.h"
#include "store/artifact.h"

namespace hasten {
namespace {

std::vector<OutputTolerance> tolerances_of(const ProofSample& proof) {
  std::vector<OutputTolerance> tolerances;
  for (const Json& t : proof.tolerances.items()) {
    tolerances.push_back({.tolerance = {t["absolute"].as_double(), t["relative"].as_double()},
                          .source = "artifact"});
  }
  return tolerances;
}

Result<CheckRecord> replay(const Session& session, ProofSample& proof) {
  HASTEN_TRY(const std::vector<Tensor> outputs, session.run(proof.inputs));
  std::vector<std::string> names;
  for (const TensorInfo& info : session.outputs()) names.push_back(info.name);
  const std::vector<OutputTolerance> tolerances = tolerances_of(proof);
  const Reference reference{.what = proof.what, .outputs = std::move(proof.outputs), .exact = {}};
  return check_outputs(outputs, reference, tolerances, names);
}

}  // namespace

int run_verify(const VerifyCommand& command) {
  Result<ArtifactFile> artifact = ArtifactFile::open(command.artifact);
  if (!artifact) {
    const Result<Model> model = open_model(command.artifact);
    if (!model || model->format == "hasten") return fail(artifact.error());
    return fail(
        {Code::kInvalidArgument,
         format("{} is a model ({}), not an artifact", command.artifact.string(), model->format),
         "hasten tune makes an artifact of it"});
  }
  if (Status whole = artifact->verify_hashes(); !whole) return fail(whole.error());
  Result<std::vector<ProofSample>> proofs = artifact->proofs();
  if (!proofs) return fail(proofs.error());
  LoadOptions options;
  options.plugin_dirs = command.common.plugins;
  Result<Session> session = Session::load(command.artifact, options);
  if (!session) return fail(session.error());
  for (const std::string& warning : session->warnings()) print_warning(warning);

  bool passed = true;
  Json calls = Json::array();
  std::string text = format("hashes      {} entries are what was written\nbackend     {}\n",
                            artifact->manifest().sha256.size(), session->backend());
  for (ProofSample& proof : *proofs) {
    const std::string what = proof.what;
    Result<CheckRecord> record = replay(*session, proof);
    if (!record) return fail(std::move(record).error().within(what));
    passed = passed && record->passed;
    Json call = Json::object({{"what", what}, {"passed", record->passed}});
    if (record->worst) {
      call.set("worst", Json::object({{"output", record->worst->output},
                                      {"abs", record->worst->absolute},
                                      {"rel", record->worst->relative},
                                      {"limit", record->worst->limit}}));
      text += format("values      {}: {}, worst {:.2g} (limit {:.2g}) in '{}'\n",
                     printable_name(what), record->passed ? "agrees" : "DIFFERS",
                     record->worst->absolute, record->worst->limit,
                     printable_name(record->worst->output));
    } else {
      text += format("values      {}: {}\n", printable_name(what),
                     record->passed ? "agrees" : printable_name(record->message));
    }
    calls.push(std::move(call));
  }
  const Json json = Json::object({{"schema", 1},
                                  {"hasten", kVersion},
                                  {"artifact", command.artifact.string()},
                                  {"backend", session->backend()},
                                  {"passed", passed},
                                  {"calls", std::move(calls)}});
  if (Status put = put_json(json, command.common.json); !put) return fail(put.error());
  if (command.common.json != "-") print(text + (passed ? "verified" : "NOT verified"));
  return passed ? kExitDone : kExitNothingUsable;
}

}  // namespace hasten
