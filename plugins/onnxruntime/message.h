// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime says, for somebody who does not have its source.
#pragma once

#include <string>

namespace hasten {

// Without the places in its source ("/.../graph/model.cc:256 onnxruntime::Model::Model(...) ") that
// it puts before what failed.
std::string without_source_places(std::string message);
// What can be done about it, where that is known; else empty.
std::string remedy_for(const std::string& message);

}  // namespace hasten
