// SPDX-License-Identifier: Apache-2.0
// hasten._core: what decides, for Python. Plain values, JSON texts and tensors cross; what
// an nn.Module is, this folder does not know.
#include <nanobind/nanobind.h>

#include "base/version.h"
#include "python/bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The core of hasten.";
  module.attr("__version__") = hasten::kVersion;
  hasten::bind_session(module);
  hasten::bind_tune(module);
  hasten::bind_recording(module);
  hasten::bind_contest(module);
}
