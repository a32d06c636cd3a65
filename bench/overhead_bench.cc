// SPDX-License-Identifier: Apache-2.0
// What a call through hasten costs above the engine's own call: the smallest model
// (2x + 1 on [2,3]), the same prepared tensors, one thread. `hasten/ENGINE` minus
// `raw/ENGINE` is ours; the counter `allocations` is per call, and the difference is ours too.
//
//   build/bench/bench_overhead --benchmark_enable_random_interleaving=true
//   --benchmark_repetitions=15
#include <hasten/runtime.h>
#include <hasten/tune.h>

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <openvino/openvino.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "allocations.h"

namespace {

constexpr std::array<float, 6> kInput = {1, 2, 3, 4, 5, 6};
const std::string kModel = HASTEN_BENCH_DATA "/affine.onnx";

// Runs `call` in the timed loop and reports what it allocated.
template <class Call>
void measure(benchmark::State& state, const Call& call) {
  for (int i = 0; i < 1000; ++i) call();
  const size_t before = allocations();
  size_t calls = 0;
  for (auto _ : state) {
    call();
    ++calls;
  }
  state.counters["allocations"] =
      static_cast<double>(allocations() - before) / static_cast<double>(std::max<size_t>(1, calls));
}

const OrtApi* ort_api() {
  static const OrtApi* const api = [] {
    void* library = dlopen(HASTEN_BENCH_ONNXRUNTIME, RTLD_NOW | RTLD_LOCAL);
    const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    return base()->GetApi(ORT_API_VERSION);
  }();
  return api;
}

void check(OrtStatus* status) {
  if (!status) return;
  std::fprintf(stderr, "%s\n", ort_api()->GetErrorMessage(status));
  std::exit(1);
}

void raw_onnxruntime(benchmark::State& state) {
  const OrtApi* ort = ort_api();
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  OrtSession* session = nullptr;
  OrtMemoryInfo* memory = nullptr;
  OrtValue* input = nullptr;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->SetIntraOpNumThreads(options, 1));
  check(ort->CreateSession(env, kModel.c_str(), options, &session));
  check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  const std::array<int64_t, 2> shape = {2, 3};
  check(ort->CreateTensorWithDataAsOrtValue(memory, const_cast<float*>(kInput.data()),
                                            sizeof kInput, shape.data(), shape.size(),
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  const char* const input_name = HASTEN_BENCH_INPUT;
  const char* const output_name = HASTEN_BENCH_OUTPUT;
  measure(state, [&] {
    OrtValue* output = nullptr;
    const OrtValue* in = input;
    check(ort->Run(session, nullptr, &input_name, &in, 1, &output_name, 1, &output));
    ort->ReleaseValue(output);
  });
  ort->ReleaseValue(input);
  ort->ReleaseSession(session);
}

// The engine's documented way for a steady stream of calls: a request with its input
// bound once.
void raw_openvino(benchmark::State& state) {
  ov::Core core;
  ov::CompiledModel model = core.compile_model(kModel, "CPU", ov::inference_num_threads(1),
                                               ov::hint::inference_precision(ov::element::f32));
  ov::InferRequest request = model.create_infer_request();
  ov::Tensor input(ov::element::f32, {2, 3}, const_cast<float*>(kInput.data()));
  request.set_input_tensor(input);
  measure(state, [&] {
    request.infer();
    benchmark::DoNotOptimize(request.get_output_tensor().data());
  });
}

// An artifact of the model for one engine, made by hasten itself.
std::filesystem::path artifact_for(const std::string& backend) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hasten-bench-" + backend + ".hasten");
  hasten::TuneOptions options;
  options.model = kModel;
  options.inputs = {std::string(HASTEN_BENCH_INPUT) + "=float32[B,3]"};
  options.strategy = hasten::StrategyName::kOneBackend;
  options.backends = {backend + ":threads=1"};
  options.batch_sizes = {1, 2};
  options.performance_validation = false;
  options.output = path;
  const hasten::Result<hasten::TuneReport> report = hasten::tune(options);
  if (report) return path;
  std::fprintf(stderr, "%s: %s\n", backend.c_str(), report.error().message.c_str());
  std::exit(1);
}

void through_hasten(benchmark::State& state, const std::string& backend) {
  hasten::Result<hasten::Session> session = hasten::Session::load(artifact_for(backend));
  if (!session) return state.SkipWithError(session.error().message.c_str());
  const std::array<int64_t, 2> shape = {2, 3};
  const hasten::Tensor input = hasten::Tensor::from<float>(kInput, shape);
  const std::array<DLTensor, 1> inputs = {input.view()};
  std::array<hasten::Tensor, 1> outputs;
  measure(state, [&] {
    if (!session->run(inputs, outputs)) std::abort();
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("raw/onnxruntime", raw_onnxruntime);
  benchmark::RegisterBenchmark("hasten/onnxruntime",
                               [](auto& state) { through_hasten(state, "onnxruntime"); });
  benchmark::RegisterBenchmark("raw/openvino", raw_openvino);
  benchmark::RegisterBenchmark("hasten/openvino",
                               [](auto& state) { through_hasten(state, "openvino"); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
