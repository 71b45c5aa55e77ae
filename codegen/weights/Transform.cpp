//===- Transform.cpp - What is done to weights before they are stored -----===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transforms of a spark.weight. Those of rows are applied whenever a row is
// read. Those of columns need all rows: the matrix is read into memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BadWeight.h"
#include "codegen/weights/PackPlan.h"
#include "codegen/weights/Rotation.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace sparkc;

/// Applied to a row of a matrix.
using RowStep = std::function<void(double *row)>;

/// Columns are rotated so many at a time.
static constexpr int64_t kLanes = 16;

static RowStep rotateRow(Rotation rotation, int64_t cols) {
  return [rotation = std::move(rotation), cols](double *row) {
    for (int64_t c = 0; c < cols; c += rotation.size())
      rotation.apply(row + c);
  };
}

/// Rotates the columns of `values`, [rows, cols], from row `first` on.
static void rotateColumns(const Rotation &rotation, int64_t first,
                          int64_t rows, int64_t cols,
                          std::vector<float> &values) {
  llvm::parallelFor(0, (cols + kLanes - 1) / kLanes, [&](size_t block) {
    const int64_t left = int64_t(block) * kLanes;
    const int64_t lanes = std::min(kLanes, cols - left);
    std::vector<double> run(rotation.size() * lanes);
    for (int64_t r = first; r < rows; r += rotation.size()) {
      for (int64_t i = 0; i < rotation.size(); ++i)
        std::copy_n(&values[(r + i) * cols + left], lanes, &run[i * lanes]);
      rotation.apply(run.data(), lanes);
      for (int64_t i = 0; i < rotation.size(); ++i)
        std::copy_n(&run[i * lanes], lanes, &values[(r + i) * cols + left]);
    }
  });
}

/// Reads all of a matrix, whose file can forget it then.
static llvm::Expected<std::shared_ptr<std::vector<float>>>
readAll(const SourceMatrix &matrix) {
  auto values =
      std::make_shared<std::vector<float>>(matrix.rows * matrix.cols);
  std::vector<std::string> errors(matrix.rows);
  llvm::parallelFor(0, matrix.rows, [&](size_t row) {
    float *out = &(*values)[row * matrix.cols];
    readRow(matrix, row, out);
    if (!std::all_of(out, out + matrix.cols,
                     [](float w) { return std::isfinite(w); }))
      errors[row] = badStoredWeight(matrix, row);
  });
  for (const std::string &error : errors)
    if (!error.empty())
      return llvm::createStringError(error);
  if (matrix.release)
    matrix.release(matrix.data,
                   matrix.rows * sourceRowBytes(matrix.type, matrix.cols));
  return values;
}

llvm::Error WeightSources::transform(spark::WeightOp weight,
                                     SourceMatrix &matrix) {
  const int64_t cols = matrix.cols;
  if (weight.isFolded()) {
    matrix.transform = [cols](float *row) { std::fill_n(row, cols, 1.0f); };
    return llvm::Error::success();
  }
  std::vector<RowStep> rowSteps;
  std::vector<spark::RotateOutAttr> columnSteps;
  for (Attribute step : weight.getTransformsAttr()) {
    if (auto fold = dyn_cast<spark::FoldAttr>(step)) {
      auto norm = SymbolTable::lookupNearestSymbolFrom<spark::WeightOp>(
          weight, fold.getNorm());
      auto source = openStored(norm, /*asRow=*/true);
      if (!source)
        return source.takeError();
      if (std::string text = badStoredWeight(*source, 0); !text.empty())
        return llvm::createStringError(text);
      std::vector<float> factors(cols);
      readRow(*source, 0, factors.data());
      rowSteps.push_back([factors = std::move(factors)](double *row) {
        for (size_t c = 0; c < factors.size(); ++c)
          row[c] *= factors[c];
      });
    } else if (auto in = dyn_cast<spark::RotateInAttr>(step)) {
      rowSteps.push_back(
          rotateRow(Rotation(in.getSize(), in.getSeed()), cols));
    } else {
      columnSteps.push_back(cast<spark::RotateOutAttr>(step));
    }
  }
  if (!rowSteps.empty())
    matrix.transform = [rowSteps = std::move(rowSteps), cols](float *row) {
      std::vector<double> wide(row, row + cols);
      for (const RowStep &step : rowSteps)
        step(wide.data());
      std::copy(wide.begin(), wide.end(), row);
    };
  if (columnSteps.empty())
    return llvm::Error::success();

  auto read = readAll(matrix);
  if (!read)
    return read.takeError();
  std::shared_ptr<std::vector<float>> values = std::move(*read);
  for (spark::RotateOutAttr out : columnSteps)
    rotateColumns(Rotation(out.getSize(), out.getSeed()), out.getFirst(),
                  matrix.rows, cols, *values);
  matrix.data = reinterpret_cast<const uint8_t *>(values->data());
  matrix.type = SourceType::F32;
  matrix.transform = nullptr;
  matrix.release = nullptr;
  matrix.owner = std::move(values);
  return llvm::Error::success();
}
