// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "base/test_support.h"
#include "runtime/runner.h"
#include "runtime/test_backend.h"

namespace {
thread_local size_t allocations = 0;
}  // namespace

// Inlined, they look to g++ like a new without its delete.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

using namespace hasten;
using namespace hasten::testing;

namespace {

template <class F>
size_t allocations_of(F&& call) {
  const size_t before = allocations;
  call();
  return allocations - before;
}

}  // namespace

TEST_CASE("Runner: a call allocates nothing beyond what the backend itself allocates") {
  const TemporaryFolder folder = folder_for("allocation");
  REQUIRE(write_file_atomically(folder.path() / "what", "2"));
  const Axis batch = {AxisKind::kBatch, 1, 4, 1, "B"};
  Manifest manifest;
  manifest.payloads = {{"payload/0", {"test", {}}, "", {}}};
  manifest.graphs.resize(1);
  manifest.graphs[0].spec.inputs = {{"x", DType::kFloat32, {batch}}};
  manifest.graphs[0].spec.outputs = manifest.graphs[0].spec.inputs;
  manifest.graphs[0].routes = {{"payload/0", {{"B", {1, 8}}}}};
  TemporaryFolder artifact = folder_for("allocation");
  const auto path = artifact.path() / "m.hasten";
  REQUIRE(write_artifact(path, manifest, {{"payload/0", folder.path()}}, {}));
  auto file = ArtifactFile::open(path);
  REQUIRE(file);
  const auto runner = Runner::load(*std::move(file), host_of(false));
  REQUIRE(runner);
  const auto library = BackendLibrary::from_table(table(false));
  const auto executable = library.load(folder.path(), 1);
  REQUIRE(executable);

  const Tensor input = Tensor::zeros(DType::kFloat32, Shape{3});
  DLTensor view = input.view();
  const std::span<const DLTensor> views(&view, 1);
  std::vector<Tensor> outputs(1);
  bool ok = true;
  const size_t raw = allocations_of([&] { ok &= executable->run(views, outputs).has_value(); });
  const auto through_runner = [&] { ok &= (*runner)->run(views, outputs).has_value(); };
  CHECK(allocations_of(through_runner) == raw);
  view.strides = nullptr;
  CHECK(allocations_of(through_runner) == raw);
  CHECK(ok);
}
