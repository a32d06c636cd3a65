// SPDX-License-Identifier: Apache-2.0
// The plugin under test and its models, for those that run ONNX.
#pragma once

#include <string>

#include "plugin_test_support.h"

namespace hasten::test {

inline const Plugin& plugin() {
  static const Plugin opened(HASTEN_TEST_PLUGIN);
  return opened;
}

inline std::string data(const std::string& name) {
  return std::string(HASTEN_TEST_DATA) + "/" + name + ".onnx";
}

}  // namespace hasten::test
