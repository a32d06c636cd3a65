// SPDX-License-Identifier: Apache-2.0
// The list that stands beside an AOTInductor package, PACKAGE.inputs: what its inputs must
// be. A package itself checks nothing and answers wrongly at a size it was not made for.
#pragma once

#include <hasten/plugin_tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hasten {

struct PackageAxis {
  int64_t min = 0, max = 0;  // Equal: static. A negative max: no bound.
  int64_t step = 1;
  int symbol = -1;  // Axes of one symbol have one size.
};

struct PackageInput {
  std::string name, dtype;
  std::vector<PackageAxis> axes;
};

struct PackageInputs {
  std::vector<PackageInput> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> cpu;  // Instruction sets that the code may use, in Linux's words.
  int n_symbols = 0;

  // Throws HASTEN_INVALID_ARGUMENT with the name of the file that is wrong.
  static PackageInputs read(const std::string& file);
  static PackageInputs parse(std::string_view text, const std::string& file);

  // Throws HASTEN_INVALID_ARGUMENT with the name of the input and what it must be.
  void check(std::span<const DLTensor> inputs, size_t n_outputs) const;
  // The first of `cpu` that is not among the flags of this machine; empty: all are there.
  std::string missing_on(std::string_view flags) const;
};

// The flags of this machine's first CPU; empty where Linux does not tell.
std::string cpu_flags();

}  // namespace hasten
