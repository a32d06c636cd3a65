// SPDX-License-Identifier: Apache-2.0
// The parts of hasten._core, a file each.
#pragma once

#include <nanobind/nanobind.h>

namespace hasten {

void bind_session(nanobind::module_& module);    // Session: an artifact that runs.
void bind_tune(nanobind::module_& module);       // tune(), backends().
void bind_recording(nanobind::module_& module);  // graphs_of(): axes from recorded calls.
void bind_contest(nanobind::module_& module);    // check() and race() of Python callables.

}  // namespace hasten
