// SPDX-License-Identifier: Apache-2.0
// What every stage of a tune shares: limits, the folder for scratch, where news go.
#pragma once

#include <hasten/tune.h>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/files.h"
#include "measure/noise.h"
#include "store/journal.h"
#include "tune/reservation.h"
#include "tune/union_timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace hasten {

struct Workshop {
  const TuneOptions& options;
  const TuneProgress& progress;
  const Clock& clock;
  std::filesystem::path folder;    // Scratch; removed after the tune.
  std::optional<Journal> journal{};  // None: no artifact, so no place beside it.
  bool journal_ended = false;        // For want of space.
  int threads = 1;
  uint64_t memory_limit_bytes = 0;   // Of one child.
  uint64_t waiting_limit_bytes = 0;  // Of all that wait for a turn, together.
  std::atomic<uint64_t> waiting_bytes = 0;
  std::optional<std::chrono::nanoseconds> build_deadline, deadline;  // By `clock`; none: no limit.
  std::optional<std::chrono::nanoseconds> end;             // Of the whole tune, the same.
  std::optional<std::chrono::nanoseconds> study_deadline;  // While the original is studied.
  std::atomic<bool> cut_short = false;  // The limit kept something from being built or measured.
  UnionTimer work{clock};  // Children's builds and conversions, and measured turns.
  ActivityReading racing;  // What the machine did during the races, all of them together.
  std::mutex mutex;        // Of progress and the journal.
  Spawner spawner;         // Children must not outlive it.

  void say(TuneEvent event) {
    if (!progress) return;
    const std::lock_guard lock(mutex);
    progress(event);
  }
  void say(const std::string& stage, const std::string& text) {
    say({.kind = TuneEvent::Kind::kStage, .stage = stage, .candidate = {}, .text = text});
  }
  void warn(const std::string& text) {
    say({.kind = TuneEvent::Kind::kWarning, .stage = {}, .candidate = {}, .text = text});
  }
  // A journal that cannot be written to must not end hours of work: it ends there, and stays
  // ours.
  void record(const char* kind, Json entry) {
    Status written;
    {
      const std::lock_guard lock(mutex);
      if (!journal || journal_ended) return;
      written = journal->append(kind, std::move(entry));
      journal_ended = !written;
    }
    if (!written) warn(written.error().message + "; the journal ends there");
  }
  bool stopped() const { return options.stop.stop_requested(); }
  bool time_is_spent() const { return deadline && clock.now() >= *deadline; }
  bool build_time_is_spent() const { return build_deadline && clock.now() >= *build_deadline; }
  // Of one build that begins now.
  std::chrono::nanoseconds build_timeout() const {
    if (!build_deadline) return options.build_timeout;
    const std::chrono::nanoseconds left = *build_deadline - clock.now();
    return std::clamp(left, std::chrono::nanoseconds(1), options.build_timeout);
  }
  // Of a step that may belong to the study of the original, which nothing goes on without.
  std::chrono::nanoseconds in_study(std::chrono::nanoseconds limit) const {
    if (!study_deadline) return limit;
    return std::clamp(*study_deadline - clock.now(), std::chrono::nanoseconds(1), limit);
  }
  std::chrono::nanoseconds run_timeout() const { return in_study(options.run_timeout); }
  // For a child of this size that stays alive between its turns. None: it may not.
  std::optional<Reservation> room_for(uint64_t bytes) {
    return Reservation::take(waiting_bytes, bytes, waiting_limit_bytes);
  }
  RunLimits build_limits() const {
    return {.timeout = build_timeout(), .memory_bytes = memory_limit_bytes, .stop = options.stop};
  }
};

}  // namespace hasten
