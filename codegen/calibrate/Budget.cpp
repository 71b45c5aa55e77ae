//===- Budget.cpp - Which grid for which matrix ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Budget.h"
#include <algorithm>
#include <numeric>

using namespace sparkc;

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

llvm::Expected<FrontPoint>
sparkc::bestWithin(llvm::ArrayRef<GridUnit> units, uint64_t bytes) {
  FrontPoint point;
  std::vector<Step> steps = stepsOf(units, point);
  if (point.bytes > bytes)
    return llvm::createStringError("needs at least " +
                                   llvm::Twine(point.bytes) + " bytes");
  // A unit that could not take a step takes no later one.
  std::vector<bool> stuck(units.size());
  for (const Step &step : steps) {
    if (!stuck[step.unit] && point.bytes + step.bytes <= bytes)
      take(point, step);
    else
      stuck[step.unit] = true;
  }
  return point;
}
