//===- Budget.cpp - Which grid for which matrix ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Budget.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sparkc;

/// What a budget leaves above the cheapest choices is spent in so many steps.
static constexpr uint64_t kBudgetSteps = 8192;

namespace {
/// One unit stored better.
struct Step {
  size_t unit, to;
  uint64_t bytes; ///< more
  double gain;    ///< KL less
  double worth() const { return gain / double(bytes); }
};
} // namespace

/// The choices of a unit that some price makes best, by bytes.
static std::vector<size_t> hullOf(const GridUnit &unit) {
  std::vector<size_t> order(unit.choices.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const GridChoice &x = unit.choices[a], &y = unit.choices[b];
    return x.bytes != y.bytes ? x.bytes < y.bytes : x.kl < y.kl;
  });
  std::vector<size_t> hull;
  auto slope = [&](size_t a, size_t b) {
    const GridChoice &x = unit.choices[a], &y = unit.choices[b];
    return (x.kl - y.kl) / double(y.bytes - x.bytes);
  };
  for (size_t next : order) {
    if (!hull.empty() &&
        unit.choices[next].kl >= unit.choices[hull.back()].kl)
      continue;
    if (!hull.empty() &&
        unit.choices[next].bytes == unit.choices[hull.back()].bytes)
      continue;
    while (hull.size() > 1 && slope(hull.back(), next) >=
                                  slope(hull[hull.size() - 2], hull.back()))
      hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

/// All steps, best first; those of a unit stay in their order, since a hull's
/// slopes fall.
static std::vector<Step> stepsOf(llvm::ArrayRef<GridUnit> units,
                                 FrontPoint &start) {
  std::vector<Step> steps;
  for (size_t u = 0; u < units.size(); ++u) {
    const GridUnit &unit = units[u];
    std::vector<size_t> hull = hullOf(unit);
    start.chosen.push_back(hull.front());
    start.bytes += unit.choices[hull.front()].bytes;
    start.kl += unit.choices[hull.front()].kl;
    for (size_t i = 1; i < hull.size(); ++i) {
      const GridChoice &from = unit.choices[hull[i - 1]],
                       &to = unit.choices[hull[i]];
      steps.push_back({u, hull[i], to.bytes - from.bytes, from.kl - to.kl});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
    return a.worth() > b.worth();
  });
  return steps;
}

static void take(FrontPoint &point, const Step &step) {
  point.chosen[step.unit] = step.to;
  point.bytes += step.bytes;
  point.kl -= step.gain;
}

std::vector<FrontPoint> sparkc::gridFront(llvm::ArrayRef<GridUnit> units) {
  FrontPoint point;
  std::vector<Step> steps = stepsOf(units, point);
  std::vector<FrontPoint> front{point};
  for (const Step &step : steps) {
    take(point, step);
    front.push_back(point);
  }
  return front;
}

static uint64_t fewestBytesOf(const GridUnit &unit) {
  uint64_t few = unit.choices.front().bytes;
  for (const GridChoice &choice : unit.choices)
    few = std::min(few, choice.bytes);
  return few;
}

uint64_t sparkc::fewestBytes(llvm::ArrayRef<GridUnit> units) {
  uint64_t sum = 0;
  for (const GridUnit &unit : units)
    sum += fewestBytesOf(unit);
  return sum;
}

llvm::Expected<FrontPoint>
sparkc::bestWithin(llvm::ArrayRef<GridUnit> units, uint64_t bytes) {
  const uint64_t least = fewestBytes(units);
  if (least > bytes)
    return llvm::createStringError("needs at least " + llvm::Twine(least) +
                                   " bytes");
  // A knapsack over what is left, in steps; choices are rounded up to whole
  // ones. kl[s]: the least with s steps for the units so far.
  const uint64_t left = bytes - least;
  const uint64_t step = std::max<uint64_t>(1, left / kBudgetSteps);
  const size_t steps = left / step;
  std::vector<double> kl(steps + 1, 0.0), next(steps + 1);
  std::vector<std::vector<uint8_t>> taken;
  for (const GridUnit &unit : units) {
    const uint64_t few = fewestBytesOf(unit);
    std::vector<uint8_t> &best = taken.emplace_back(steps + 1);
    std::fill(next.begin(), next.end(), HUGE_VAL);
    for (size_t i = 0; i < unit.choices.size(); ++i) {
      const uint64_t cost = (unit.choices[i].bytes - few + step - 1) / step;
      for (size_t s = cost; s <= steps; ++s) {
        const double with = kl[s - cost] + unit.choices[i].kl;
        if (with < next[s]) {
          next[s] = with;
          best[s] = uint8_t(i);
        }
      }
    }
    std::swap(kl, next);
  }
  FrontPoint point;
  point.chosen.resize(units.size());
  size_t s = steps;
  for (size_t u = units.size(); u-- > 0;) {
    const GridChoice &choice = units[u].choices[taken[u][s]];
    point.chosen[u] = taken[u][s];
    point.bytes += choice.bytes;
    point.kl += choice.kl;
    s -= (choice.bytes - fewestBytesOf(units[u]) + step - 1) / step;
  }
  return point;
}
