// SPDX-License-Identifier: Apache-2.0
// The library behind the C API, opened at run time, so that the plugin loads, describes
// itself and says what is missing on a machine without it.
#pragma once

#include <hasten/plugin.hpp>

#include <string>
#include <string_view>

struct OrtApi;
struct OrtEnv;
struct OrtMemoryInfo;
struct OrtStatus;

namespace hasten {

// Set by Library::get(), once; the deleters of outputs need it without a look-up.
extern const OrtApi* ort;

// Throws what `status` says and releases it; `fallback` is for the codes that say
// nothing about whose fault it is.
void check(OrtStatus* status, hasten_code fallback, std::string_view what);

// The process's ONNX Runtime. Never closed: its thread pools and outputs that the
// host still holds may outlive any owner we could name.
class Library {
 public:
  static const Library& get();  // Throws HASTEN_UNAVAILABLE; the next call tries again.

  OrtEnv* env = nullptr;
  OrtMemoryInfo* memory = nullptr;  // Of plain host memory.
  std::string version, path;

 private:
  Library();
  void* open();
};

}  // namespace hasten
