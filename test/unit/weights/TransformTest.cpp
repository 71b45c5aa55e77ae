//===- TransformTest.cpp - Weights that are rotated as they are read ------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "codegen/weights/PackPlan.h"
#include "codegen/weights/Rotation.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sparkc;

namespace {

/// A matrix in f64; norms have one row.
struct Dense {
  int64_t rows, cols;
  std::vector<double> values;
  double &at(int64_t r, int64_t c) { return values[r * cols + c]; }
};

/// a [rows, n] times b [n, cols].
Dense product(Dense a, Dense b) {
  Dense out{a.rows, b.cols, std::vector<double>(a.rows * b.cols)};
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t k = 0; k < a.cols; ++k)
      for (int64_t c = 0; c < b.cols; ++c)
        out.at(r, c) += a.at(r, k) * b.at(k, c);
  return out;
}

Dense transposed(Dense a) {
  Dense out{a.cols, a.rows, std::vector<double>(a.values.size())};
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.cols; ++c)
      out.at(c, r) = a.at(r, c);
  return out;
}

/// The identity of `first` rows, and behind it R's on the diagonal.
Dense rotationMatrix(int64_t size, uint64_t seed, int64_t all,
                     int64_t first = 0) {
  Dense out{all, all, std::vector<double>(all * all)};
  const Rotation rotation(size, seed);
  for (int64_t i = 0; i < first; ++i)
    out.at(i, i) = 1;
  for (int64_t r = first; r < all; ++r) {
    std::vector<double> row(size);
    row[(r - first) % size] = 1;
    rotation.apply(row.data());
    for (int64_t c = 0; c < size; ++c)
      out.at(r, first + (r - first) / size * size + c) = row[c];
  }
  return out;
}

class Transform : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<spark::SparkDialect>();
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("transform", "", name));
    path = name.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  /// Appends random numbers to the file; says what they are there.
  Dense add(llvm::StringRef name, llvm::StringRef dtype, int64_t rows,
            int64_t cols, llvm::StringRef through, bool vector = false) {
    Dense dense{rows, cols, {}};
    std::normal_distribution<float> normal(vector ? 1 : 0, 1);
    const uint64_t offset = bytes.size();
    for (int64_t i = 0; i < rows * cols; ++i) {
      float value = normal(rng);
      if (dtype == "F32") {
        const char *p = reinterpret_cast<const char *>(&value);
        bytes.append(p, p + 4);
      } else {
        const bool brain = dtype == "BF16";
        uint16_t half = brain ? bf16FromFloat(value) : f16FromFloat(value);
        value = brain ? floatFromBF16(half) : floatFromF16(half);
        const char *p = reinterpret_cast<const char *>(&half);
        bytes.append(p, p + 2);
      }
      dense.values.push_back(value);
    }
    text += llvm::formatv("spark.weight @{0} : tensor<{1}{2}xf32> from <\"{3}\","
                          " {4}, offset = {5}, bytes = {6}>{7}\n",
                          name, vector ? "" : std::to_string(rows) + "x", cols,
                          path, dtype, offset, bytes.size() - offset, through)
                .str();
    return dense;
  }

  /// Opens a weight of what was added.
  SourceMatrix open(llvm::StringRef name, bool asRow = false) {
    EXPECT_FALSE(llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
      os << bytes;
      return llvm::Error::success();
    }));
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    auto matrix =
        sources.open(module->lookupSymbol<spark::WeightOp>(name), asRow);
    EXPECT_TRUE(bool(matrix)) << llvm::toString(matrix.takeError());
    return *matrix;
  }

  /// Every element is within a few roundings of the norm of what went into it.
  void expectNear(const SourceMatrix &got, Dense want) {
    ASSERT_EQ(got.rows, want.rows);
    ASSERT_EQ(got.cols, want.cols);
    double most = 0;
    for (double value : want.values)
      most = std::max(most, std::fabs(value));
    std::vector<float> row(got.cols);
    for (int64_t r = 0; r < got.rows; ++r) {
      readRow(got, r, row.data());
      for (int64_t c = 0; c < got.cols; ++c)
        ASSERT_NEAR(row[c], want.at(r, c), 3e-7 * most) << r << " " << c;
    }
  }

  mlir::MLIRContext context;
  std::string path, text, bytes;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightSources sources;
  std::mt19937 rng{5};
};

TEST_F(Transform, ReaderOfANorm) {
  Dense norm = add("norm", "BF16", 1, 40, " through [#spark.folded]", true);
  Dense w = add("w", "BF16", 24, 40,
                " through [#spark.fold<@norm>,"
                " #spark.rotate_in<size = 40, seed = 3>]");
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.cols; ++c)
      w.at(r, c) *= norm.at(0, c);
  expectNear(open("w"), product(w, rotationMatrix(40, 3, 40)));
  SourceMatrix ones = open("norm", /*asRow=*/true);
  std::vector<float> row(40);
  readRow(ones, 0, row.data());
  EXPECT_EQ(row, std::vector<float>(40, 1));
}

TEST_F(Transform, WriterToTheStream) {
  Dense w = add("w", "F16", 96, 21,
                " through [#spark.rotate_out<size = 96, seed = 8>]");
  expectNear(open("w"), product(transposed(rotationMatrix(96, 8, 96)), w));
}

TEST_F(Transform, HeadsOfValues) {
  Dense w = add("w", "F32", 34, 64,
                " through [#spark.rotate_in<size = 64, seed = 1>,"
                " #spark.rotate_out<size = 6, seed = 2, first = 16>]");
  Dense q = transposed(rotationMatrix(6, 2, 34, 16));
  expectNear(open("w"), product(q, product(w, rotationMatrix(64, 1, 64))));
}

TEST_F(Transform, HeadsOfOutputs) {
  Dense w = add("w", "BF16", 48, 128,
                " through [#spark.rotate_in<size = 32, seed = 9>,"
                " #spark.rotate_out<size = 48, seed = 1>]");
  Dense r = transposed(rotationMatrix(48, 1, 48));
  SourceMatrix got = open("w");
  expectNear(got, product(r, product(w, rotationMatrix(32, 9, 128))));
  EXPECT_EQ(got.type, SourceType::F32);
}

TEST_F(Transform, PackedRowsAreTransformed) {
  add("w", "BF16", 16, 24, " through [#spark.rotate_in<size = 24, seed = 1>]");
  SourceMatrix source = open("w");
  PackedMatrix matrix = PackedMatrix::plain(Layout::Tile16F32, 16, 24);
  std::vector<uint8_t> packed;
  EXPECT_FALSE(packFloatMatrix(matrix, {source}, [&](auto chunk) {
    packed.insert(packed.end(), chunk.begin(), chunk.end());
    return llvm::Error::success();
  }));
  std::vector<float> want(24);
  for (int64_t lane = 0; lane < 16; ++lane) {
    readRow(source, lane, want.data());
    for (int64_t c = 0; c < 24; ++c) {
      float value;
      std::memcpy(&value, &packed[64 * c + 4 * lane], 4);
      EXPECT_EQ(value, want[c]);
    }
  }
}

} // namespace
