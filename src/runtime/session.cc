// SPDX-License-Identifier: Apache-2.0
#include <hasten/runtime.h>

#include "backend/registry.h"
#include "base/text.h"
#include "record/environment.h"
#include "runtime/runner.h"

namespace hasten {
namespace {

Result<BackendLibrary> open_library(const Registry& registry, const std::string& backend) {
  HASTEN_TRY(const BackendEntry entry, registry.find(backend));
  if (entry.library.empty()) {
    return Error{Code::kUnavailable, format("backend '{}' runs in Python only", backend)};
  }
  return BackendLibrary::open(entry.library);
}

}  // namespace

struct Session::Impl {
  std::unique_ptr<Runner> runner;
};

Result<Session> Session::load(const std::filesystem::path& path, const LoadOptions& options) {
  HASTEN_TRY(ArtifactFile file, ArtifactFile::open(path));
  HASTEN_TRY(const Registry registry, Registry::scan(options.plugin_dirs));
  const Environment here = Environment::of_this_machine();
  PayloadHost host{
      .library = [registry](const std::string& name) { return open_library(registry, name); },
      .instruction_sets = here.instruction_sets,
      .threads = options.threads > 0 ? options.threads : here.cpus,
      .verify = options.verify};
  auto runner = Runner::load(std::move(file), std::move(host));
  if (!runner) return std::move(runner).error().within(path.string());
  return Session(std::make_unique<Impl>(Impl{*std::move(runner)}));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const std::vector<TensorInfo>& Session::inputs() const { return impl_->runner->inputs(); }
const std::vector<TensorInfo>& Session::outputs() const { return impl_->runner->outputs(); }
std::string Session::backend() const { return impl_->runner->backend(); }
const std::vector<std::string>& Session::warnings() const { return impl_->runner->warnings(); }

Result<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs) const {
  return impl_->runner->run(inputs);
}
Result<std::vector<Tensor>> Session::run(const std::map<std::string, Tensor>& inputs) const {
  return impl_->runner->run(inputs);
}
Status Session::run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const {
  return impl_->runner->run(inputs, outputs);
}

}  // namespace hasten
