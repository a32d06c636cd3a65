// SPDX-License-Identifier: Apache-2.0
// The faults that the fake backend commits on purpose; each is the kind of thing
// that a real backend has done.
#pragma once

#include "fake_tensor.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace fake {

inline const std::vector<std::string>& faults() {
  static const std::vector<std::string> known = {"none",
                                                 "build_fail",
                                                 "build_crash",
                                                 "build_hang",
                                                 "build_hang_term",
                                                 "build_grow",
                                                 "abort",
                                                 "exit",
                                                 "run_fail",
                                                 "run_crash",
                                                 "run_hang",
                                                 "run_hang_term",
                                                 "run_grow",
                                                 "zeros",
                                                 "imprecise",
                                                 "wrong_row",
                                                 "swap_outputs",
                                                 "wrong_dtype",
                                                 "wrong_shape",
                                                 "nan_at_batch",
                                                 "freeze_batch",
                                                 "alias_input",
                                                 "alias_last",
                                                 "write_input",
                                                 "nondeterministic",
                                                 "save_fail",
                                                 "load_fail",
                                                 "slow",
                                                 "leak",
                                                 "bad_utf8",
                                                 "write_outside",
                                                 "print",
                                                 "not_std_exception",
                                                 "stale_save",
                                                 "no_strides"};
  return known;
}

// A write through a null pointer that no compiler may remove.
inline void crash() {
  signal(SIGSEGV, SIG_DFL);  // A sanitizer's handler would make an exit code of it.
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

[[noreturn]] inline void hang(bool ignore_term) {
  if (ignore_term) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
  }
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Takes memory until somebody ends it. Bounded, so that a test without a limit
// cannot take the machine down; the pauses leave a watcher time to look.
[[noreturn]] inline void grow() {
  constexpr size_t kStep = 16u << 20;
  constexpr size_t kSteps = 256;  // 4 GiB
  std::vector<std::vector<char>> hoard;
  for (size_t i = 0; i < kSteps; ++i) {
    hoard.emplace_back(kStep, '\1');
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  hang(false);
}

// Of the stage "build", before anything is built.
inline void commit_build_fault(const std::string& fault) {
  if (fault == "build_fail") {
    throw hasten::PluginError(HASTEN_BUILD_FAILED, "fake: operator com.example::Foo is unknown");
  }
  if (fault == "bad_utf8") {
    throw hasten::PluginError(HASTEN_BUILD_FAILED, "fake: \xff\xfe is no UTF-8");
  }
  if (fault == "not_std_exception") throw 42;
  if (fault == "build_crash") crash();
  if (fault == "build_hang" || fault == "build_hang_term") hang(fault == "build_hang_term");
  if (fault == "build_grow") grow();
  if (fault == "abort") std::abort();
  if (fault == "exit") std::exit(3);
  if (fault == "write_outside") std::ofstream("stray.txt") << "not where it belongs\n";
}

// Of the stage "run", before the outputs are computed.
inline void commit_run_fault(const std::string& fault) {
  if (fault == "run_fail") throw hasten::PluginError(HASTEN_RUN_FAILED, "fake: it did not work");
  if (fault == "run_crash") crash();
  if (fault == "run_hang" || fault == "run_hang_term") hang(fault == "run_hang_term");
  if (fault == "run_grow") grow();
  if (fault == "leak") new std::vector<char>(64u << 10, '\1');
  if (fault == "print") {
    std::puts("{\"durations_ns\":[1]}");
    std::fflush(stdout);
  }
}

inline void set_nan(Dense& t) {
  if (t.dtype.code != kDLFloat || t.data.size() < t.item_bytes()) return;
  std::memset(t.data.data(), 0xff, t.item_bytes());  // All ones is a NaN in every IEEE format.
}

inline void damage_last_row(Dense& t) {
  if (t.rows() < 2) return;
  for (size_t i = t.data.size() - t.row_bytes(); i < t.data.size(); ++i) {
    t.data[i] ^= std::byte{0x41};
  }
}

// The rows of a model that was built for one batch size only: what is missing is
// zero, what is too much is lost.
inline void freeze_batch(Dense& t, int64_t batch) {
  if (t.shape.empty()) return;
  const size_t row = t.row_bytes();
  t.shape[0] = batch;
  t.data.resize(static_cast<size_t>(batch) * row);
}

// As of a number format with few digits: every float32 1 % too large.
inline void make_imprecise(Dense& t) {
  if (t.dtype.code != kDLFloat || t.dtype.bits != 32) return;
  for (size_t i = 0; i + sizeof(float) <= t.data.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, t.data.data() + i, sizeof(value));
    value *= 1.01F;
    std::memcpy(t.data.data() + i, &value, sizeof(value));
  }
}

// Of the stage "run", on the right outputs.
inline void spoil(const std::string& fault, int baked_batch, std::vector<Dense>& outputs) {
  static std::minstd_rand random{std::random_device{}()};
  if (fault == "swap_outputs" && outputs.size() > 1) std::swap(outputs[0], outputs[1]);
  for (Dense& t : outputs) {
    if (fault == "zeros") std::fill(t.data.begin(), t.data.end(), std::byte{0});
    if (fault == "imprecise") make_imprecise(t);
    if (fault == "wrong_row") damage_last_row(t);
    if (fault == "nan_at_batch") set_nan(t);
    if (fault == "freeze_batch") freeze_batch(t, baked_batch);
    if (fault == "wrong_shape") t.shape.insert(t.shape.begin(), 1);
    if (fault == "wrong_dtype") t.dtype.code = t.dtype.code == kDLInt ? kDLUInt : kDLInt;
    if (fault == "nondeterministic" && !t.data.empty()) {
      t.data[0] = static_cast<std::byte>(random());
    }
  }
}

}  // namespace fake
