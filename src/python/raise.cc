// SPDX-License-Identifier: Apache-2.0
#include "python/raise.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace hasten {

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("hasten.errors").attr("HastenError");
  const std::string code(to_string(error.code));
  const nb::object exception = type(error.message, code, error.hint);
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace hasten
