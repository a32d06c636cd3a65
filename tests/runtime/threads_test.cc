// SPDX-License-Identifier: Apache-2.0
// One session, many threads.
#include <doctest/doctest.h>

#include <hasten/runtime.h>
#include <hasten/tune.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fake_model.h"

namespace hasten {
namespace {

using testing::FakeModel;

// x[rows,3], all of it `value`.
Tensor filled(int64_t rows, float value) {
  const std::vector<float> values(static_cast<size_t>(rows) * 3, value);
  const int64_t shape[] = {rows, 3};
  return Tensor::from<float>(values, shape);
}

// Is it y[rows,3] = 2 value + 1?
bool right(const Result<std::vector<Tensor>>& outputs, int64_t rows, float value) {
  if (!outputs || outputs->size() != 1) return false;
  const Tensor& y = outputs->front();
  if (y.shape().size() != 2 || y.shape()[0] != rows) return false;
  for (const float element : y.values<float>()) {
    if (element != 2 * value + 1) return false;
  }
  return true;
}

TEST_CASE("Session: eight threads share one, each gets the answers to its own inputs") {
  const FakeModel model;
  const TuneOptions options = model.options();
  REQUIRE(tune(options));
  const Result<Session> loaded =
      Session::load(options.output, {.plugin_dirs = {FakeModel::plugins()}});
  REQUIRE(loaded);
  const Session& session = *loaded;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const int64_t rows = 1 + (t + i) % 5;
          const auto value = static_cast<float>(100 * t + i);
          if (i % 2 == 0) {
            std::vector<Tensor> inputs;
            inputs.push_back(filled(rows, value));
            wrong += right(session.run(inputs), rows, value) ? 0 : 1;
          } else {
            std::map<std::string, Tensor> inputs;
            inputs.emplace("x", filled(rows, value));
            wrong += right(session.run(inputs), rows, value) ? 0 : 1;
          }
        }
      });
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace hasten
