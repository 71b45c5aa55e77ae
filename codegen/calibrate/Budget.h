//===- Budget.h - Which grid for which matrix -------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_BUDGET_H
#define SPARKC_CODEGEN_CALIBRATE_BUDGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace sparkc {

/// A way to store a unit.
struct GridChoice {
  std::string scheme; ///< "q4:g64"
  uint64_t bytes = 0; ///< that a token streams
  double kl = 0;      ///< nats: what the model loses by it
};

/// Matrices that are stored alike: those of one fused linear.
struct GridUnit {
  std::vector<std::string> weights; ///< names that rules know, "lm_head"
  std::vector<GridChoice> choices;
};

/// A choice for each unit.
struct FrontPoint {
  uint64_t bytes = 0; ///< of all units
  double kl = 0;      ///< sum over units: errors of different units add up
  std::vector<size_t> chosen;
};

/// Of all units with the cheapest choice for each.
uint64_t fewestBytes(llvm::ArrayRef<GridUnit> units);

/// From the fewest bytes to the least loss: each point is the one before with
/// one unit stored better, the one that gains most a byte. (The lower convex
/// hull of all combinations; both fields are strictly monotone.)
std::vector<FrontPoint> gridFront(llvm::ArrayRef<GridUnit> units);

/// The combination of least KL that fits in `bytes` (a knapsack, to 1/8192 of
/// what they leave to choose). An error names the fewest bytes there are.
llvm::Expected<FrontPoint> bestWithin(llvm::ArrayRef<GridUnit> units,
                                      uint64_t bytes);

/// What --pareto draws: bits a weight against mean KL, as an SVG image.
struct ParetoPicture {
  struct Point {
    double bits = 0, kl = 0;
  };
  std::string title;
  std::vector<Point> front;  ///< by bits, drawn as a line
  std::vector<Point> chosen; ///< at most one: a ring
  std::vector<Point> measured; ///< at most one: a filled dot
  std::string svg() const;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_BUDGET_H
