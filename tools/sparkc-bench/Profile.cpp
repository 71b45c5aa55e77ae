//===- Profile.cpp - Where the time of a call went ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

using namespace sparkc::bench;
using Json = nlohmann::ordered_json;

CallEvents
sparkc::bench::usedEvents(const std::vector<sparkc_profile_event> &room,
                          size_t capacity, bool &full) {
  CallEvents call;
  full = false;
  for (size_t start = 0; start + capacity <= room.size(); start += capacity) {
    auto first = room.begin() + start, last = first + capacity;
    auto end = std::find_if(
        first, last, [](const sparkc_profile_event &e) { return e.end == 0; });
    full |= end == last;
    if (end != first)
      call.emplace_back(first, end);
  }
  return call;
}

void PhaseTimes::add(const CallEvents &call, const PhaseTable &table) {
  for (const auto &thread : call) {
    if (thread.empty())
      continue;
    total += double(thread.back().resumed - thread.front().begin);
    for (const sparkc_profile_event &e : thread) {
      double cycles = double(e.resumed - e.begin);
      const sparkc_phase *phase = table.find(e.phase);
      if (phase && phase->kind == SPARKC_PHASE_LINEAR)
        linear += cycles;
      else if (phase && phase->kind == SPARKC_PHASE_ATTENTION)
        attention += cycles;
      waiting += double(e.resumed - e.end);
    }
  }
}

static const char *kindName(const sparkc_phase *phase) {
  switch (phase ? phase->kind : uint32_t(SPARKC_PHASE_OTHER)) {
  case SPARKC_PHASE_LINEAR:
    return "linear";
  case SPARKC_PHASE_ATTENTION:
    return "attention";
  default:
    return "other";
  }
}

/// Cycles from the first thread's begin of its i-th phase to the last one's
/// end, before anyone waits.
static std::vector<double> spans(const CallEvents &call) {
  std::vector<double> cycles;
  for (size_t i = 0; i < call.front().size(); ++i) {
    uint64_t begin = UINT64_MAX, end = 0;
    for (const auto &thread : call)
      if (i < thread.size()) {
        begin = std::min(begin, thread[i].begin);
        end = std::max(end, thread[i].end);
      }
    cycles.push_back(double(end - begin));
  }
  return cycles;
}

std::string sparkc::bench::traceJson(const std::vector<TracedCall> &calls,
                                     const PhaseTable &table,
                                     double cyclesPerSecond) {
  uint64_t origin = UINT64_MAX;
  for (const TracedCall &call : calls)
    for (const auto &thread : call.events)
      if (!thread.empty())
        origin = std::min(origin, thread.front().begin);
  auto microseconds = [&](uint64_t from, uint64_t to) {
    return double(to - from) / cyclesPerSecond * 1e6;
  };
  Json events = Json::array();
  int pid = 0;
  for (const TracedCall &call : calls) {
    ++pid;
    events.push_back({{"ph", "M"},
                      {"pid", pid},
                      {"name", "process_name"},
                      {"args", {{"name", call.name}}}});
    if (call.events.empty())
      continue;
    std::vector<double> span = spans(call.events);
    for (size_t tid = 0; tid < call.events.size(); ++tid) {
      events.push_back({{"ph", "M"},
                        {"pid", pid},
                        {"tid", tid},
                        {"name", "thread_name"},
                        {"args", {{"name", "thread " + std::to_string(tid)}}}});
      for (size_t i = 0; i < call.events[tid].size(); ++i) {
        const sparkc_profile_event &e = call.events[tid][i];
        const sparkc_phase *phase = table.find(e.phase);
        Json args = {{"kind", kindName(phase)}};
        if (e.layer != UINT32_MAX)
          args["layer"] = e.layer;
        if (phase && phase->bytes) {
          args["bytes"] = phase->bytes;
          if (i < span.size() && span[i] > 0)
            args["GB/s"] = phase->bytes / (span[i] / cyclesPerSecond) * 1e-9;
        }
        args["barrier_us"] = microseconds(e.end, e.resumed);
        events.push_back({{"ph", "X"},
                          {"pid", pid},
                          {"tid", tid},
                          {"ts", microseconds(origin, e.begin)},
                          {"dur", microseconds(e.begin, e.end)},
                          {"name", phase && phase->name ? phase->name : "?"},
                          {"cat", kindName(phase)},
                          {"args", args}});
        events.push_back({{"ph", "X"},
                          {"pid", pid},
                          {"tid", tid},
                          {"ts", microseconds(origin, e.end)},
                          {"dur", microseconds(e.end, e.resumed)},
                          {"name", "barrier"},
                          {"cat", "barrier"}});
      }
    }
  }
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump() + "\n";
}
