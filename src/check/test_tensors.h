// SPDX-License-Identifier: Apache-2.0
// Tensors for the tests of this folder.
#pragma once

#include <hasten/tensor.h>

#include "check/check.h"
#include "tensor/ops.h"

#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

namespace hasten {

template <class T>
Tensor test_tensor(std::initializer_list<T> values, Shape shape = {}) {
  const std::vector<T> all(values);
  if (shape.empty()) shape = {static_cast<int64_t>(all.size())};
  return Tensor::from<T>(std::span<const T>(all), shape);
}

template <class... Tensors>
std::vector<Tensor> test_list(Tensors... tensors) {
  std::vector<Tensor> list;
  (list.push_back(std::move(tensors)), ...);
  return list;
}

inline std::vector<Tensor> test_clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& tensor : tensors) list.push_back(tensor.clone());
  return list;
}

inline Reference test_reference(std::vector<Tensor> outputs, std::vector<Tensor> exact = {}) {
  return {.what = "sample 0", .outputs = std::move(outputs), .exact = std::move(exact)};
}

inline std::vector<Reference> test_references(Reference reference) {
  std::vector<Reference> list;
  list.push_back(std::move(reference));
  return list;
}

// float32 elements changed one by one.
template <class Change>
Tensor test_changed(const Tensor& tensor, Change change) {
  Tensor copy = tensor.clone();
  float* values = static_cast<float*>(copy.data());
  for (size_t i = 0; i < copy.size(); ++i) values[i] = change(values[i], i);
  return copy;
}

inline Tensor test_as_double(const Tensor& tensor) {
  const std::vector<double> values = to_doubles(tensor);
  return Tensor::from<double>(std::span<const double>(values), tensor.shape());
}

inline std::vector<OutputTolerance> test_tolerance(double absolute, double relative = 0) {
  return {{.tolerance = {.absolute = absolute, .relative = relative}, .source = "given"}};
}

}  // namespace hasten
