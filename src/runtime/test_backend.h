// SPDX-License-Identifier: Apache-2.0
// A backend for this folder's tests: a payload is a file `what` with a factor, and the
// output is the first input times the factor. "fail" cannot be loaded; "2 inputs=3" takes
// three inputs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/files.h"
#include "base/text.h"
#include "runtime/payloads.h"

namespace hasten::testing {

inline std::atomic<int> loads{0};
inline std::atomic<int> most_at_once{0};  // Calls of one executable.

struct Scaler {
  float factor = 1;
  size_t n_inputs = 1;
  std::atomic<int> running{0};
};

inline Scaler* scaler(hasten_executable* raw) { return reinterpret_cast<Scaler*>(raw); }

inline hasten_code say(hasten_sink* sink, std::string_view text, hasten_code code) {
  sink->write(sink, text.data(), text.size());
  return code;
}

inline hasten_code load_scaler(const char* dir, const hasten_device*, hasten_executable** out,
                               hasten_sink* error) {
  const auto text = read_file(std::filesystem::path(dir) / "what");
  if (!text) return say(error, text.error().message, HASTEN_INVALID_ARGUMENT);
  if (*text == "fail") return say(error, "told to fail", HASTEN_UNAVAILABLE);
  ++loads;
  auto* made = new Scaler;
  made->factor = std::strtof(text->c_str(), nullptr);
  if (const size_t at = text->find("inputs="); at != std::string::npos) {
    made->n_inputs = std::strtoul(text->c_str() + at + 7, nullptr, 10);
  }
  *out = reinterpret_cast<hasten_executable*>(made);
  return HASTEN_OK;
}

inline hasten_code run_scaler(hasten_executable* raw, const DLTensor* inputs, size_t,
                              DLManagedTensorVersioned** outputs, size_t, hasten_sink* error) {
  Scaler& made = *scaler(raw);
  const int now = ++made.running;
  int most = most_at_once;
  while (now > most && !most_at_once.compare_exchange_weak(most, now)) {
  }
  hasten_code code = HASTEN_OK;
  const bool strided = inputs[0].strides || inputs[0].ndim == 0;
  const auto forwards = [](int64_t stride) { return stride >= 0; };
  if (!strided || !std::all_of(inputs[0].strides, inputs[0].strides + inputs[0].ndim, forwards)) {
    code = say(error, "no strides, or negative ones", HASTEN_INTERNAL);
  } else {
    Tensor tensor = *Tensor::copy_of(inputs[0]);
    auto* values = static_cast<float*>(tensor.data());
    for (size_t i = 0; i < tensor.size(); ++i) values[i] *= made.factor;
    *outputs = tensor.release();
  }
  --made.running;
  return code;
}

inline const hasten_backend_api& table(bool concurrent) {
  const auto make = [](uint32_t traits) {
    hasten_backend_api api{};
    api.struct_size = sizeof(api);
    api.traits = traits;
    api.name = "test";
    api.version = "1";
    api.probe = [](const hasten_device*, hasten_sink* text) {
      return say(text, R"({"library_version": "1.0"})", HASTEN_OK);
    };
    api.load = load_scaler;
    api.arity = [](hasten_executable* raw, size_t* n_inputs, size_t* n_outputs) {
      *n_inputs = scaler(raw)->n_inputs;
      *n_outputs = 1;
      return HASTEN_OK;
    };
    api.run = run_scaler;
    api.destroy = [](hasten_executable* raw) { delete scaler(raw); };
    return api;
  };
  static const hasten_backend_api one = make(0), many = make(HASTEN_TRAIT_CONCURRENT_RUN);
  return concurrent ? many : one;
}

inline PayloadHost host_of(bool concurrent) {
  return {.library = [concurrent](const std::string& name) -> Result<BackendLibrary> {
            if (name == "test") return BackendLibrary::from_table(table(concurrent));
            return Error{Code::kInvalidArgument, format("no backend '{}'", name)};
          },
          .instruction_sets = {"avx2"},
          .threads = 1,
          .verify = true};
}

}  // namespace hasten::testing
