// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "backend/worker.h"
#include "base/child_process.h"
#include "base/files.h"

namespace hasten {

constexpr std::chrono::seconds kLong{60};  // No test waits as long unless it fails.
constexpr const char* kAffine = "function affine\ninput x float32[B,3]\noutput y float32[B,3]\n";

// A fake model in a folder of its own, and workers for it.
struct WorkerFixture {
  TemporaryFolder folder = *TemporaryFolder::create("worker-test");
  Spawner spawner;

  static std::filesystem::path plugin(const std::string& name) {
    const char* plugins = std::getenv("HASTEN_TEST_PLUGINS");
    REQUIRE_MESSAGE(plugins, "HASTEN_TEST_PLUGINS names the folder of the test plugins");
    return std::filesystem::path(plugins) / ("hasten_" + name + ".so");
  }
  WorkerOptions options() const {
    return {.backend = {.name = "fake", .library = plugin("fake"), .command = {}, .describe = {}},
            .work_dir = folder.path()};
  }
  Worker start(WorkerOptions options) {
    auto worker = Worker::start(spawner, std::move(options));
    REQUIRE_MESSAGE(worker, (worker ? "" : worker.error().message));
    return *std::move(worker);
  }
  Worker start() { return start(options()); }

  std::filesystem::path model(const std::string& lines = kAffine) const {
    const auto path = folder.path() / "model.fake";
    std::ofstream(path) << "hasten-model fake\n" << lines;
    return path;
  }
  Status build(Worker& worker, std::map<std::string, std::string> config = {},
               const std::string& lines = kAffine) const {
    return worker.build(model(lines), "fake", Json::object(), {"fake", std::move(config)}, kLong);
  }
  // A worker with a built model and one input of two rows in slot 0.
  Worker ready(std::map<std::string, std::string> config = {}) {
    Worker worker = start();
    REQUIRE(build(worker, std::move(config)));
    REQUIRE(worker.set_inputs(0, inputs({1, 2, 3, 4, 5, 6}, {2, 3}), kLong));
    return worker;
  }
  static std::vector<Tensor> inputs(std::vector<float> values, Shape shape) {
    std::vector<Tensor> tensors;
    tensors.push_back(Tensor::from(std::span<const float>(values), shape));
    return tensors;
  }
};

inline std::vector<float> floats_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

inline bool says(const Error& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

}  // namespace hasten
