// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: named arrays in a zip, in file order. Names are the tensors' own, as NumPy has
// it: they may look like a path ("/encoder/Relu_output_0") and never become one.
//
// bfloat16 has no NumPy dtype: ml_dtypes writes it as raw 2-byte void ('V2', '<V2'
// or descr 'bfloat16'), which is read as bfloat16 here; writing uses 'V2' too.
// Fortran order and big-endian arrays are read and converted.
#pragma once

#include <hasten/result.h>
#include <hasten/tensor.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Errors name the file and the array. An array of objects (pickle) is refused.
Result<NamedTensors> read_npz(const std::filesystem::path& path);
Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors);
// Copies, named as numpy.savez names arrays that are given by order: "arr_0", "arr_1", ...
NamedTensors positional(std::span<const Tensor> tensors);
// One array as the content of a .npy file.
std::string to_npy(const Tensor& tensor);
Result<Tensor> from_npy(std::string_view bytes);

}  // namespace hasten
