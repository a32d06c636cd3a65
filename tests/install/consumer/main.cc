// SPDX-License-Identifier: Apache-2.0
// consumer MODEL ARTIFACT: tunes the model, loads what was chosen, runs it on 1, 2, 3.
#include <hasten/runtime.h>
#include <hasten/tune.h>

#include <cstdio>

int main(int, char** argv) {
  hasten::TuneOptions options{.model = argv[1], .inputs = {"x=float32[B,3]"}, .output = argv[2]};
  const auto report = hasten::tune(options);
  if (!report) return std::printf("%s\n", report.error().message.c_str()), 1;
  const auto session = hasten::Session::load(argv[2]);
  if (!session) return std::printf("%s\n", session.error().message.c_str()), 1;

  const float x[] = {1, 2, 3};
  const int64_t shape[] = {1, 3};
  std::vector<hasten::Tensor> inputs;
  inputs.push_back(hasten::Tensor::from<float>(x, shape));
  const auto outputs = session->run(inputs);
  if (!outputs) return std::printf("%s\n", outputs.error().message.c_str()), 1;
  for (const float y : (*outputs)[0].values<float>()) std::printf("%g\n", y);
}
