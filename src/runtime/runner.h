// SPDX-License-Identifier: Apache-2.0
// A loaded artifact, as Session shows it to programs.
#pragma once

#include <hasten/result.h>
#include <hasten/runtime.h>
#include <hasten/tensor.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/dispatch.h"
#include "runtime/payloads.h"

namespace hasten {

class Runner {
 public:
  // Fails when some graph has no payload that can run here, with the reason of each.
  static Result<std::unique_ptr<Runner>> load(ArtifactFile file, PayloadHost host);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  const std::string& backend() const { return backend_; }
  const std::vector<std::string>& warnings() const { return payloads_.warnings(); }

  // As Session has them. From any thread.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) const;
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) const;
  Status run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const;

 private:
  struct Graph {
    GraphTable table;
    std::vector<size_t> routes;  // Indices of payloads.
    size_t n_outputs;
  };
  // What will answer a call.
  struct Target {
    const LoadedPayload* payload;
    size_t n_outputs;
  };

  Runner(ArtifactFile file, PayloadHost host);
  Status prepare();
  // The first route that fits and can run.
  Result<Target> resolve(std::span<const DLTensor> inputs) const;
  Result<std::vector<Tensor>> run_views(std::span<const DLTensor> inputs) const;
  // The tensors in the order of the graph whose inputs have these names.
  Result<std::vector<DLTensor>> in_order(const std::map<std::string, Tensor>& inputs) const;
  Error explain(std::span<const DLTensor> inputs) const;
  Error no_route(size_t graph, const SymbolSizes& sizes) const;
  Error misnamed(const std::map<std::string, Tensor>& inputs) const;

  Payloads payloads_;
  std::vector<Graph> graphs_;
  std::vector<TensorInfo> inputs_, outputs_;  // Of the first graph.
  std::string backend_;
};

}  // namespace hasten
