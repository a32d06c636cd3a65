// SPDX-License-Identifier: Apache-2.0
// The model in other formats, each made once however many candidates want it.
#pragma once

#include <hasten/result.h>

#include "backend/compilers.h"
#include "model/graph_spec.h"
#include "model/model.h"
#include "tune/workshop.h"

#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hasten {

struct Converted {
  std::filesystem::path path;
  std::string format;
  Json facts = Json::array();  // Of each step.
  double seconds = 0;
  // Sizes the compilers promise it for; a symbol that is absent has no bounds.
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  bool machine_specific = false;  // Holds machine code for this processor.
};

class Conversions {
 public:
  // `samples`: the folder of sample-N.npz that compilers get.
  Conversions(Workshop& shop, const Compilers& compilers, const Model& model,
              const GraphSpec& graph, std::filesystem::path samples);

  // As Compilers::reachable(), from the model's format.
  Result<std::string> reachable(const std::vector<std::string>& formats) const;
  // From any thread; the first one to ask does the work, the others wait.
  Result<Converted> get(const std::string& to, const std::map<std::string, std::string>& options);

 private:
  Result<Converted> step(const CompilerEntry& compiler, const Converted& from,
                         const std::map<std::string, std::string>& options);

  Workshop& shop_;
  const Compilers& compilers_;
  const Model& model_;
  const GraphSpec& graph_;
  std::filesystem::path samples_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<Converted>>> steps_;
};

}  // namespace hasten
