// SPDX-License-Identifier: Apache-2.0
// Running an artifact from a program: no Python, no PyTorch unless the chosen
// backend needs it.
//
//   auto session = hasten::Session::load("resnet18.hasten");
//   auto outputs = session->run({{"image", std::move(image)}});
#pragma once

#include <hasten/export.h>
#include <hasten/result.h>
#include <hasten/tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hasten {

struct LoadOptions {
  // Where to look for plugins first; then HASTEN_PLUGIN_PATH, then beside the library.
  std::vector<std::filesystem::path> plugin_dirs;
  int threads = 0;      // CPUs the backend may use; 0: all that this process may use.
  bool verify = true;   // Hash every payload file before it is used.
};

struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  // Each axis as in an input SPEC: "3", or a symbol with its range: "B=1..64".
  std::vector<std::string> axes;
};

// A loaded artifact. run() may be called from several threads.
class HASTEN_API Session {
 public:
  // Fails with the name of the file that is wrong. A payload that cannot run here
  // gives way to the next in the artifact; warnings() says so.
  static Result<Session> load(const std::filesystem::path& path, const LoadOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  std::string backend() const;  // The candidate in use: "onnxruntime:threads=2".
  const std::vector<std::string>& warnings() const;

  // In the order of inputs(); one tensor per output, in the order of outputs().
  // Inputs are only read, in any strides. An input of another dtype, rank or size
  // than the artifact was made for is kInvalidArgument and names the input.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) const;
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) const;
  // The same without any allocation of hasten's own: views in, `outputs` filled.
  Status run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hasten
