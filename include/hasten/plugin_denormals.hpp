// SPDX-License-Identifier: Apache-2.0
// Engines set "denormals are zero" for the threads they own, but for the thread that
// calls them either not at all or for good. Header-only and no part of the ABI.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hasten {

// Gives the calling thread back its floating-point mode at the end of the scope.
class KeepFloatMode {
 public:
  KeepFloatMode() = default;
  KeepFloatMode(const KeepFloatMode&) = delete;
  KeepFloatMode& operator=(const KeepFloatMode&) = delete;
#if defined(__x86_64__)
  ~KeepFloatMode() { _mm_setcsr(saved_); }
  void denormals_as_zero() const { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }

 private:
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  unsigned saved_ = _mm_getcsr();
#else
  ~KeepFloatMode() {}
  void denormals_as_zero() const {}  // Only the engine's own threads follow.
#endif
};

}  // namespace hasten
