// SPDX-License-Identifier: Apache-2.0
// What libhasten.so shows: everything else in it is hidden.
#pragma once

#define HASTEN_API __attribute__((visibility("default")))
