// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/test_support.h"
#include "base/text.h"
#include "runtime/test_backend.h"

using namespace hasten;
using namespace hasten::testing;
namespace fs = std::filesystem;

namespace {

const Axis kB = {AxisKind::kBatch, 1, 4, 1, "B"};
const Axis kTwo = {AxisKind::kStatic, 2, 2, 1, ""};

ArtifactGraph graph_of(std::vector<Route> routes, std::vector<Axis> axes = {kB, kTwo}) {
  ArtifactGraph graph;
  graph.spec.inputs = {{"x", DType::kFloat32, axes}};
  graph.spec.outputs = {{"y", DType::kFloat32, axes}};
  graph.routes = std::move(routes);
  return graph;
}

// An artifact whose payload N is a file with the text N, for the backend of test_backend.h.
struct Made {
  TemporaryFolder folder = folder_for("runner");
  fs::path path = folder.path() / "m.hasten";
  Manifest manifest;
  std::map<std::string, fs::path> dirs;

  void add(const std::string& text) {
    const std::string name = "payload/" + std::to_string(dirs.size());
    dirs[name] = folder.path() / std::to_string(dirs.size());
    REQUIRE(make_folder(dirs[name]));
    REQUIRE(write_file_atomically(dirs[name] / "what", text));
    manifest.payloads.push_back({name, {"test", {{"n", std::to_string(dirs.size() - 1)}}}, "", {}});
  }
  Result<std::unique_ptr<Runner>> load(PayloadHost host = host_of(false)) const {
    HASTEN_TRY_STATUS(write_artifact(path, manifest, dirs, {}));
    HASTEN_TRY(ArtifactFile file, ArtifactFile::open(path));
    return Runner::load(std::move(file), std::move(host));
  }
  std::unique_ptr<Runner> loaded() const {
    auto runner = load();
    REQUIRE(runner);
    return *std::move(runner);
  }
};

// Routes by batch size: payload 0 for 1 to 4 (times 2), payload 1 for all (times 3).
Made two_routes() {
  Made made;
  made.add("2");
  made.add("3");
  made.manifest.graphs = {graph_of({{"payload/0", {{"B", {1, 4}}}}, {"payload/1", {}}})};
  return made;
}

std::vector<Tensor> ones(const Shape& shape) {
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor::from<float>(std::vector<float>(element_count(shape), 1), shape));
  return inputs;
}

// The factor of the payload that answered.
float factor(const Runner& runner, const Shape& shape) {
  const auto outputs = runner.run(ones(shape));
  REQUIRE(outputs);
  REQUIRE(outputs->size() == 1);
  CHECK(std::ranges::equal((*outputs)[0].shape(), shape));
  return (*outputs)[0].values<float>()[0];
}

std::string refusal(const Runner& runner, std::span<const Tensor> inputs) {
  const auto outputs = runner.run(inputs);
  REQUIRE_FALSE(outputs);
  CHECK(outputs.error().code == Code::kInvalidArgument);
  return outputs.error().message;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("Runner: the first route whose ranges hold the sizes answers") {
  const auto runner = two_routes().loaded();
  CHECK(factor(*runner, {1, 2}) == 2);
  CHECK(factor(*runner, {4, 2}) == 2);
  CHECK(factor(*runner, {5, 2}) == 3);
  CHECK(runner->backend() == "test:n=0");
  CHECK(runner->warnings().empty());
}

TEST_CASE("Runner: tells its inputs and outputs as the manifest has them") {
  const auto runner = two_routes().loaded();
  REQUIRE(runner->inputs().size() == 1);
  CHECK(runner->inputs()[0].name == "x");
  CHECK(runner->inputs()[0].axes == std::vector<std::string>{"B=1..4", "2"});
  CHECK(runner->outputs()[0].name == "y");
}

TEST_CASE("Runner: a payload is loaded when it is first needed") {
  const int before = loads;
  const auto runner = two_routes().loaded();
  CHECK(loads == before + 1);
  CHECK(factor(*runner, {9, 2}) == 3);
  CHECK(factor(*runner, {9, 2}) == 3);
  CHECK(loads == before + 2);
}

TEST_CASE("Runner: a payload that cannot run here gives way, and the warnings say why") {
  Made made = two_routes();
  SUBCASE("its backend fails to load it") {
    REQUIRE(write_file_atomically(made.dirs["payload/0"] / "what", "fail"));
    const auto runner = made.loaded();
    CHECK(factor(*runner, {1, 2}) == 3);
    CHECK(runner->backend() == "test:n=1");
    REQUIRE(runner->warnings().size() == 1);
    CHECK(contains(runner->warnings()[0], "payload/0 (test:n=0): told to fail"));
  }
  SUBCASE("the CPU lacks an instruction set") {
    made.manifest.payloads[0].instruction_sets = {"avx2", "made_up"};
    const auto runner = made.loaded();
    CHECK(factor(*runner, {1, 2}) == 3);
    REQUIRE(runner->warnings().size() == 1);
    CHECK(
        contains(runner->warnings()[0], "was built for a CPU with made_up, which this one lacks"));
  }
  SUBCASE("its library is not there") {
    made.manifest.payloads[0].candidate.backend = "absent";
    const auto runner = made.loaded();
    CHECK(factor(*runner, {1, 2}) == 3);
    CHECK(contains(runner->warnings()[0], "no backend 'absent'"));
  }
  SUBCASE("it takes another number of inputs") {
    REQUIRE(write_file_atomically(made.dirs["payload/0"] / "what", "2 inputs=2"));
    const auto runner = made.loaded();
    CHECK(factor(*runner, {1, 2}) == 3);
    CHECK(contains(runner->warnings()[0], "takes 2 inputs and gives 1 outputs"));
  }
}

TEST_CASE("Runner: a library of another version is a warning, no refusal") {
  Made made = two_routes();
  made.manifest.payloads[0].library_version = "0.9";
  const auto runner = made.loaded();
  CHECK(factor(*runner, {1, 2}) == 2);
  REQUIRE(runner->warnings().size() == 1);
  CHECK(contains(runner->warnings()[0], "version 0.9 of the library, this machine has 1.0"));
}

TEST_CASE("Runner: when nothing can run the error lists every reason") {
  Made made = two_routes();
  made.manifest.payloads[0].instruction_sets = {"made_up"};
  REQUIRE(write_file_atomically(made.dirs["payload/1"] / "what", "fail"));
  const auto runner = made.load();
  REQUIRE_FALSE(runner);
  CHECK(runner.error().code == Code::kUnavailable);
  CHECK(contains(runner.error().message, "made_up"));
  CHECK(contains(runner.error().message, "told to fail"));
}

TEST_CASE("Runner: a fall-back that fails later is an error of the call and a warning") {
  Made made = two_routes();
  REQUIRE(write_file_atomically(made.dirs["payload/1"] / "what", "fail"));
  const auto runner = made.loaded();
  CHECK(runner->warnings().empty());
  const auto outputs = runner->run(ones({9, 2}));
  REQUIRE_FALSE(outputs);
  CHECK(outputs.error().code == Code::kUnavailable);
  CHECK(contains(outputs.error().message, "what was made for B=9 cannot run here"));
  CHECK(contains(outputs.error().message, "told to fail"));
  // Nothing comes behind it, so nothing is used in its place.
  CHECK(runner->warnings() == std::vector<std::string>{"payload/1 (test:n=1): told to fail"});
  CHECK(factor(*runner, {1, 2}) == 2);
}

TEST_CASE("Runner: a damaged payload is an error that names the entry, not a fall-back") {
  Made made = two_routes();
  REQUIRE(write_file_atomically(made.dirs["payload/0"] / "what", "2 damage me"));
  REQUIRE(write_artifact(made.path, made.manifest, made.dirs, {}));
  std::string bytes = *read_file(made.path);
  bytes[bytes.find("damage me")] ^= 1;
  REQUIRE(write_file_atomically(made.path, bytes));
  auto file = ArtifactFile::open(made.path);
  REQUIRE(file);
  const auto runner = Runner::load(*std::move(file), host_of(false));
  REQUIRE_FALSE(runner);
  CHECK(contains(runner.error().message, "payload/0/what"));
}

TEST_CASE("Runner: sizes that no route was checked for are refused with what was") {
  Made made;
  made.add("2");
  made.manifest.graphs = {graph_of({{"payload/0", {{"B", {1, 4}}}}})};
  const auto runner = made.loaded();
  CHECK(refusal(*runner, ones({5, 2})) ==
        "the inputs have B=5, but the artifact was checked for B=1..4 only");
}

TEST_CASE("Runner: inputs of another dtype, rank, size or number are refused by name") {
  const auto runner = two_routes().loaded();
  CHECK(contains(refusal(*runner, ones({1, 3})), "input 'x': axis 1 must be 2, not 3"));
  CHECK(contains(refusal(*runner, ones({2})), "input 'x' has rank 1"));
  CHECK(contains(refusal(*runner, {}), "0 inputs given, not 1 (x)"));
  std::vector<Tensor> wrong;
  wrong.push_back(Tensor::zeros(DType::kFloat64, Shape{1, 2}));
  CHECK(contains(refusal(*runner, wrong), "input 'x' is float64, not float32"));
  CHECK(contains(refusal(*runner, std::vector<Tensor>(1)), "input 0 is no tensor"));
  const auto one = ones({1, 2});
  DLTensor view = one[0].view();
  view.device.device_type = kDLCUDA;
  std::vector<Tensor> outputs(1);
  const Status status = runner->run(std::span(&view, 1), outputs);
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "is not in host memory"));
}

TEST_CASE("Runner: several graphs are told apart by structure") {
  Made made;
  made.add("2");
  made.add("3");
  made.manifest.graphs = {graph_of({{"payload/0", {}}}), graph_of({{"payload/1", {}}}, {kB})};
  made.manifest.graphs[1].spec.name = "1";
  const auto runner = made.loaded();
  CHECK(factor(*runner, {1, 2}) == 2);
  CHECK(factor(*runner, {7}) == 3);
  CHECK(contains(refusal(*runner, ones({1, 3})), "fit none of the artifact's graphs (graph 0:"));
}

TEST_CASE("Runner: by name; what is missing, extra or misnamed is said") {
  const auto runner = two_routes().loaded();
  std::map<std::string, Tensor> inputs;
  inputs["x"] = std::move(ones({1, 2})[0]);
  const auto outputs = runner->run(inputs);
  REQUIRE(outputs);
  CHECK((*outputs)[0].values<float>()[1] == 2);
  const auto message = [&] {
    const auto result = runner->run(inputs);
    REQUIRE_FALSE(result);
    return result.error().message;
  };
  inputs["imag"] = std::move(ones({1, 2})[0]);
  CHECK(message() == "there is no input 'imag'");
  inputs.clear();
  CHECK(message() == "the input 'x' is missing");
  inputs["X"] = std::move(ones({1, 2})[0]);
  CHECK(message() == "there is no input 'X'; did you mean 'x'?");
}

TEST_CASE("Runner: views without strides are compact, and reach the backend with strides") {
  const auto runner = two_routes().loaded();
  const auto inputs = ones({3, 2});
  DLTensor view = inputs[0].view();
  view.strides = nullptr;
  std::vector<Tensor> outputs(1);
  REQUIRE(runner->run(std::span(&view, 1), outputs));
  CHECK(outputs[0].values<float>()[5] == 2);
  std::vector<Tensor> two(2);
  const Status status = runner->run(std::span(&view, 1), two);
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "2 outputs are asked for, the model has 1"));
}

TEST_CASE("Runner: views that run backwards reach the backend in their own order") {
  const auto runner = two_routes().loaded();
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::from(std::span<const float>(rows), Shape{3, 2});
  Shape backwards = {-2, 1};
  DLTensor view = tensor.view();  // numpy's tensor[::-1].
  view.strides = backwards.data();
  view.byte_offset = 4 * sizeof(float);
  std::vector<Tensor> outputs(1);
  const Status done = runner->run(std::span(&view, 1), outputs);
  REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
  const auto values = outputs[0].values<float>();
  CHECK(std::vector<float>(values.begin(), values.end()) ==
        std::vector<float>{10, 12, 6, 8, 2, 4});
}

TEST_CASE("Runner: many inputs without strides take the way over the heap") {
  Made made;
  made.add("2 inputs=40");
  ArtifactGraph graph = graph_of({{"payload/0", {}}});
  graph.spec.inputs.assign(40, graph.spec.inputs[0]);
  made.manifest.graphs = {graph};
  const auto runner = made.loaded();
  std::vector<Tensor> inputs;
  std::vector<DLTensor> views;
  for (int i = 0; i < 40; ++i) {
    inputs.push_back(std::move(ones({3, 2})[0]));
    views.push_back(inputs.back().view());
    views.back().strides = nullptr;
  }
  std::vector<Tensor> outputs(1);
  CHECK(runner->run(views, outputs));
  CHECK(runner->run(inputs));
}

TEST_CASE("Runner: calls from several threads, one after the other where the backend asks") {
  for (const bool concurrent : {false, true}) {
    const Made made = two_routes();
    auto runner = made.load(host_of(concurrent));
    REQUIRE(runner);
    most_at_once = 0;
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 200; ++i) {
            // Half of the calls race for loading the fall-back.
            const int64_t batch = (t + i) % 2 == 0 ? 2 : 8;
            const auto outputs = (*runner)->run(ones({batch, 2}));
            if (!outputs || (*outputs)[0].values<float>()[0] != (batch == 2 ? 2 : 3)) ++wrong;
          }
        });
      }
    }
    CHECK(wrong == 0);
    if (!concurrent) CHECK(most_at_once == 1);
  }
}
