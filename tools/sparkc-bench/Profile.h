//===- Profile.h - Where the time of a call went ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_PROFILE_H
#define SPARKC_TOOLS_BENCH_PROFILE_H

#include "runtime/include/sparkc.h"

#include <string>
#include <vector>

namespace sparkc::bench {

/// The phases of a model, as sparkc_phases gives them.
struct PhaseTable {
  const sparkc_phase *phases = nullptr;
  uint32_t n = 0;
  const sparkc_phase *find(uint32_t phase) const {
    return phase < n ? phases + phase : nullptr;
  }
};

/// The events of one call, a list a thread, in TSC cycles.
using CallEvents = std::vector<std::vector<sparkc_profile_event>>;

/// The used part of the room of sparkc_session_set_profile: threads without
/// events are left out. `full` tells whether some thread used all its room, so
/// that events may be missing.
CallEvents usedEvents(const std::vector<sparkc_profile_event> &room,
                      size_t capacity, bool &full);

/// Cycles of all threads together, from their first phase to their last
/// barrier. A phase lasts from its begin until its barrier is passed.
struct PhaseTimes {
  double linear = 0, attention = 0;
  double waiting = 0; ///< of all phases, the part spent at barriers
  double total = 0;   ///< what is not linear or attention is other

  void add(const CallEvents &call, const PhaseTable &table);
  double other() const { return total - linear - attention; }
};

/// A call to be drawn: a process of its own in the timeline.
struct TracedCall {
  std::string name;
  CallEvents events;
};

/// A timeline in the Chrome trace format, one line a thread: phases with their
/// layer, the weight bytes of the whole phase and the rate at which all threads
/// together read them, and waits at barriers.
std::string traceJson(const std::vector<TracedCall> &calls,
                      const PhaseTable &table, double cyclesPerSecond);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_PROFILE_H
