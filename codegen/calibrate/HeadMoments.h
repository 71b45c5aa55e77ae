//===- HeadMoments.h - Moments for sets of the head's rows -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An error e of the head's row v costs about 1/2 sum p_v (e x)^2 of KL, where
/// p_v is the probability that the model gives token v behind the input x. So
/// each row has second moments of its own, sum p_v x x^T: those of the contexts
/// that it is likely in. Rows that are likely in like contexts share them: the
/// most frequent tokens of the text are pivots, and every row belongs to the
/// pivot whose weights point most nearly its way.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_HEADMOMENTS_H
#define SPARKC_CODEGEN_CALIBRATE_HEADMOMENTS_H

#include "codegen/calibrate/Moments.h"
#include "codegen/weights/Pack.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace sparkc {

class HeadMoments {
public:
  /// Sets of rows, at most: for codes, and where grids are only compared.
  static constexpr int64_t kSets = 1024, kSetsForMeasuring = 256;

  /// `head` [vocabulary, cols]; `text`: tokens, which say what is frequent.
  HeadMoments(const DenseKernels &dense, const SourceMatrix &head,
              llvm::ArrayRef<int32_t> text, int64_t mostSets = kSets);

  /// Adds inputs of the head, [n, cols]: x that it will meet, and y that
  /// the probabilities are of: the unquantized model's, or x where none is run.
  void add(const float *x, const float *y, int64_t n);
  /// Finds the probabilities of all that was added.
  void finish();

  /// How many sets there are.
  size_t size() const { return sets.size(); }

  /// What is done for a set: its number, its rows and their factor.
  using EachSet = llvm::function_ref<llvm::Error(
      size_t, llvm::ArrayRef<int64_t>, const ErrorFactor &)>;
  /// Calls `each` for every set, several at once from as many threads; a share
  /// of all inputs' moments, `all`, is in each factor. False if one of them is
  /// singular; an error is that of the set that gave one first.
  llvm::Expected<bool> forSets(const Moments &all, float damp, EachSet each) const;

private:
  /// A token, and a set's probability behind it.
  struct Share {
    int32_t token;
    float share;
  };

  void assign(llvm::ArrayRef<int32_t> text, int64_t mostSets);
  /// The inputs' second moments, by a set's probabilities.
  Moments momentsOf(size_t set) const;
  /// Calls work(first row, rows, their weights transposed [cols, rows]).
  void forRows(llvm::function_ref<void(int64_t, int64_t, const float *)> work)
      const;

  const DenseKernels &dense;
  const SourceMatrix &head;
  int64_t cols, tokens = 0;
  std::vector<std::vector<int64_t>> sets;
  std::vector<int32_t> setOf;     ///< of a row
  std::vector<float> inputs;      ///< x, [tokens, cols]
  std::vector<float> unquantized; ///< y, until finish
  std::vector<std::vector<Share>> sharesOf; ///< of each set, token by token
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_HEADMOMENTS_H
