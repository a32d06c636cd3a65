// SPDX-License-Identifier: Apache-2.0
// hasten._core: what decides, for Python. Plain values, JSON texts and tensors cross; what
// an nn.Module is, this folder does not know.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "backend/registry.h"
#include "base/version.h"
#include "python/bindings.h"

namespace {

// Whatever runs this program has the frameworks that its modules are made of. An interpreter
// inside another program has no name of its own.
void run_children_in_this_python() {
  const nanobind::object own = nanobind::module_::import_("sys").attr("executable");
  if (nanobind::isinstance<nanobind::str>(own)) {
    hasten::prefer_python(nanobind::cast<std::string>(own));
  }
}

}  // namespace

NB_MODULE(_core, module) {
  run_children_in_this_python();
  // A program that ends while a thread of it still holds a session has leaked nothing.
  nanobind::set_leak_warnings(false);
  module.doc() = "The core of hasten.";
  module.attr("__version__") = hasten::kVersion;
  hasten::bind_session(module);
  hasten::bind_tune(module);
  hasten::bind_recording(module);
  hasten::bind_contest(module);
}
