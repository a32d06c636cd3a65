// SPDX-License-Identifier: Apache-2.0
// Tensors across the border to Python without copies: by the DLPack C exchange API, which
// costs some ten nanoseconds a tensor where `__dlpack__` costs microseconds.
#pragma once

#include <hasten/tensor.h>
#include <nanobind/nanobind.h>

#include <span>
#include <vector>

namespace hasten {

// The functions of the type of `object` (torch.Tensor); raises TypeError for one without.
// They stay valid for the life of the process.
const DLPackExchangeAPI& exchange_of(nanobind::handle object);

// A view of a Python tensor: valid as long as the object is neither freed nor resized.
// Raises BufferError for what is not in host memory.
DLTensor view_of(const DLPackExchangeAPI& api, nanobind::handle object);

// Owns a reference to the memory of the Python tensor.
Tensor from_python(nanobind::handle object);
std::vector<Tensor> from_python(const nanobind::list& objects);

// Gives the tensor away, as a tensor of the framework that `api` belongs to.
nanobind::object to_python(const DLPackExchangeAPI& api, Tensor tensor);
nanobind::list to_python(const DLPackExchangeAPI& api, std::span<Tensor> tensors);

}  // namespace hasten
