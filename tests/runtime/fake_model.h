// SPDX-License-Identifier: Apache-2.0
// A model of the fake backend in a folder that goes away with the test.
#pragma once

#include <hasten/tune.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hasten::testing {

class FakeModel {
 public:
  FakeModel() {
    std::string name = std::filesystem::temp_directory_path() / "hasten-api-XXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(path()) << "hasten-model fake\nfunction affine\ninput x float32[B,3]\n"
                             "output y float32[B,3]\nlatency_us 2000\n";
  }
  ~FakeModel() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  FakeModel(const FakeModel&) = delete;
  FakeModel& operator=(const FakeModel&) = delete;

  std::filesystem::path path() const { return folder_ / "model.fake"; }
  std::filesystem::path in_folder(const char* name) const { return folder_ / name; }

  // What the tests tune with: one candidate, and it is faster than the model.
  TuneOptions options() const {
    TuneOptions options;
    options.model = path();
    options.inputs = {"x=float32[B,3]"};
    options.backends = {"fake:latency_us=1"};
    options.batch_sizes = {1, 2};
    options.plugins = {plugins()};
    options.output = in_folder("model.hasten");
    return options;
  }
  static std::filesystem::path plugins() { return std::getenv("HASTEN_TEST_PLUGINS"); }

 private:
  std::filesystem::path folder_;
};

}  // namespace hasten::testing
