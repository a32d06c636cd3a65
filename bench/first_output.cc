// SPDX-License-Identifier: Apache-2.0
// The shortest program that answers one call of an ONNX model by ONNX Runtime's C API:
// what `hasten run` of an artifact is held against. first_output MODEL.onnx
// Every axis without a size gets 1; the values are zeros.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

const OrtApi* ort = nullptr;

void check(OrtStatus* status) {
  if (!status) return;
  std::fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(HASTEN_BENCH_ONNXRUNTIME, RTLD_NOW | RTLD_LOCAL);
  if (!library) return 3;
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  ort = base()->GetApi(ORT_API_VERSION);
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  OrtSession* session = nullptr;
  OrtAllocator* allocator = nullptr;
  OrtTypeInfo* type = nullptr;
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  OrtValue* input = nullptr;
  OrtValue* output = nullptr;
  char* input_name = nullptr;
  char* output_name = nullptr;
  size_t rank = 0;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->CreateSession(env, argv[1], options, &session));
  check(ort->GetAllocatorWithDefaultOptions(&allocator));
  check(ort->SessionGetInputName(session, 0, allocator, &input_name));
  check(ort->SessionGetOutputName(session, 0, allocator, &output_name));
  check(ort->SessionGetInputTypeInfo(session, 0, &type));
  check(ort->CastTypeInfoToTensorInfo(type, &info));
  check(ort->GetDimensionsCount(info, &rank));
  std::vector<int64_t> shape(rank);
  check(ort->GetDimensions(info, shape.data(), rank));
  for (int64_t& size : shape) size = std::max<int64_t>(1, size);
  check(ort->CreateTensorAsOrtValue(allocator, shape.data(), rank,
                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  const OrtValue* in = input;
  check(ort->Run(session, nullptr, &input_name, &in, 1, &output_name, 1, &output));
}
