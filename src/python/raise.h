// SPDX-License-Identifier: Apache-2.0
// Errors on their way to Python: every one of ours is a hasten.HastenError with `code` and
// `hint`, so that a program can tell what happened without reading the sentence.
#pragma once

#include <hasten/result.h>

#include <utility>

namespace hasten {

// Throws; nanobind turns it into the Python exception. The caller holds the GIL.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

inline void raise_if_failed(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace hasten
