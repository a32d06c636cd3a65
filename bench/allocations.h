// SPDX-License-Identifier: Apache-2.0
// How often this process has allocated through operator new, its shared libraries
// included.
#pragma once

#include <cstddef>

size_t allocations();
