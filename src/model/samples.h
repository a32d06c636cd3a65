// SPDX-License-Identifier: Apache-2.0
// Arrays that a user gives, put into the order of a model's inputs.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include "model/signature.h"
#include "tensor/npz.h"

#include <string>
#include <vector>

namespace hasten {

// By name when a name is one of the model's; by position when all are "arr_0", "arr_1", ...
// (np.savez without names). dtype, rank and static sizes are checked as far as the signature
// has them. Optional inputs at the end may be missing: then the result is shorter.
// `origin` ("x.npz") is for messages. The result holds copies.
Result<std::vector<Tensor>> match_inputs(const NamedTensors& arrays, const Signature& signature,
                                         const std::string& origin);

}  // namespace hasten
