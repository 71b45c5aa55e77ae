//===- Rounding.cpp - Rounding that makes up for its errors ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Rounding.h"
#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/Half.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace sparkc {

/// Rows that a thread takes at a time: whole sets of 16 lanes.
static constexpr int64_t kStrip = 64;
static constexpr int64_t kLanes = 16;
/// Columns between two updates of all that follow; a multiple of any group.
static constexpr int64_t kBlock = 128;

float Rounded::value(int64_t row, int64_t col) const {
  int64_t g = row * (cols / grid.group) + col / grid.group;
  return floatFromF16(scales[g]) * float(codes[row * cols + col] - zeros[g]);
}

std::vector<uint8_t> Rounded::blocks() const {
  const BlockFormat &format = codeFormatOf(grid);
  int64_t count = rows * cols / grid.group;
  std::vector<uint8_t> bytes(count * format.bytes);
  BlockCodes block;
  for (int64_t i = 0; i < count; ++i) {
    block.scale = scales[i];
    block.zero = zeros[i];
    std::memcpy(block.codes, &codes[i * grid.group], grid.group);
    format.write(block, &bytes[i * format.bytes]);
  }
  return bytes;
}

namespace {

/// The code nearest to value / scale + zero.
int nearestCode(float value, float inverse, int zero, int maxCode) {
  float n = std::nearbyint(value * inverse);
  n = std::min(std::max(n, float(-zero)), float(maxCode - zero));
  return int(n) + zero;
}

/// The rows of one strip.
class Strip {
public:
  Strip(const DenseKernels &dense, const float *aim, int64_t first,
        int64_t count, const ErrorFactor &factor, Rounded &out)
      : dense(dense), factor(factor), out(out), grid(out.grid),
        cols(out.cols), groups(cols / grid.group), first(first), count(count),
        aim(aim + first * cols) {}

  void round();
  void startSweeps();
  void sweepCodes();
  void sweepScales();
  double loss() const;

private:
  uint8_t *codes(int64_t r) { return &out.codes[(first + r) * cols]; }
  uint16_t &scale(int64_t r, int64_t g) {
    return out.scales[(first + r) * groups + g];
  }
  uint8_t &zero(int64_t r, int64_t g) {
    return out.zeros[(first + r) * groups + g];
  }
  void roundBlock(int64_t begin, int64_t width, const float *importance,
                  std::vector<float> &work, std::vector<float> &errors);

  const DenseKernels &dense;
  const ErrorFactor &factor;
  Rounded &out;
  const GridSpec &grid;
  int64_t cols, groups, first, count;
  const float *aim;
  /// While sweeping: distance to the aim, and its product with S + damp.
  std::vector<float> distance, slope;
};

} // namespace

/// Rounds `width` columns of the strip: work [set][width][16] to errors [count
/// rounded up][width], each error divided by its U_jj.
void Strip::roundBlock(int64_t begin, int64_t width, const float *importance,
                       std::vector<float> &work, std::vector<float> &errors) {
  const int64_t group = grid.group, maxCode = grid.maxCode();
  std::vector<uint8_t> fitted(kLanes * group);
  uint16_t scales[kLanes];
  uint8_t zeros[kLanes];
  float noise[kLanes], value[kLanes], inverse[kLanes], error[kLanes];
  for (int64_t set = 0; set * kLanes < count; ++set) {
    float *w = &work[set * width * kLanes];
    int64_t lanes = std::min(kLanes, count - set * kLanes);
    for (int64_t k = 0; k < width; ++k) {
      int64_t g = (begin + k) / group;
      if (k % group == 0) {
        fitGroups16(grid, w + k * kLanes, importance + begin + k, fitted.data(),
                    scales, zeros, noise);
        for (int64_t l = 0; l < kLanes; ++l) {
          value[l] = floatFromF16(scales[l]);
          inverse[l] = value[l] != 0 ? 1 / value[l] : 0;
          if (l < lanes) {
            scale(set * kLanes + l, g) = scales[l];
            zero(set * kLanes + l, g) = zeros[l];
          }
        }
      }
      const float *u = &factor.upper[(begin + k) * cols + begin];
      for (int64_t l = 0; l < kLanes; ++l) {
        float x = w[k * kLanes + l];
        int code = nearestCode(x, inverse[l], zeros[l], maxCode);
        error[l] = (x - value[l] * float(code - zeros[l])) / u[k];
        if (l >= lanes)
          continue;
        codes(set * kLanes + l)[begin + k] = code;
        errors[(set * kLanes + l) * width + k] = error[l];
      }
      for (int64_t j = k + 1; j < width; ++j)
        for (int64_t l = 0; l < kLanes; ++l)
          w[j * kLanes + l] -= u[j] * error[l];
    }
  }
}

void Strip::round() {
  std::vector<float> rest(aim, aim + count * cols), importance(cols);
  for (int64_t c = 0; c < cols; ++c) {
    float u = factor.upper[c * cols + c];
    importance[c] = 1 / (u * u);
  }
  const int64_t sets = (count + kLanes - 1) / kLanes;
  for (int64_t begin = 0; begin < cols; begin += kBlock) {
    int64_t width = std::min(kBlock, cols - begin);
    std::vector<float> work(sets * width * kLanes), errors(count * width);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t k = 0; k < width; ++k)
        work[(r / kLanes * width + k) * kLanes + r % kLanes] =
            rest[r * cols + begin + k];
    roundBlock(begin, width, importance.data(), work, errors);
    int64_t next = begin + width;
    if (next < cols)
      dense.addProduct(&rest[next], cols, errors.data(), width,
                       &factor.upper[begin * cols + next], cols, count,
                       cols - next, width, -1.0f);
  }
}

void Strip::startSweeps() {
  distance.resize(count * cols);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t c = 0; c < cols; ++c)
      distance[r * cols + c] = out.value(first + r, c) - aim[r * cols + c];
  slope.assign(count * cols, 0.0f);
  dense.addProduct(slope.data(), cols, distance.data(), cols,
                   factor.damped.data(), cols, count, cols, cols, 1.0f);
}

double Strip::loss() const {
  double sum = 0;
  for (int64_t i = 0; i < count * cols; ++i)
    sum += double(distance[i]) * slope[i];
  return sum;
}

/// Moves single codes to where the loss is least with all others as they are.
void Strip::sweepCodes() {
  const int maxCode = grid.maxCode();
  for (int64_t r = 0; r < count; ++r) {
    float *g = &slope[r * cols];
    uint8_t *code = codes(r);
    for (int64_t c = 0; c < cols; ++c) {
      float s = floatFromF16(scale(r, c / grid.group));
      if (s == 0)
        continue;
      const float *row = &factor.damped[c * cols];
      float wanted = float(code[c]) - g[c] / (row[c] * s);
      int to = int(std::nearbyint(
          std::min(std::max(wanted, 0.0f), float(maxCode))));
      if (to == code[c])
        continue;
      float step = s * float(to - code[c]);
      code[c] = uint8_t(to);
      distance[r * cols + c] += step;
      dense.axpy(g, row, step, cols);
    }
  }
}

/// Refits each group's scale to its codes, all else as it is.
void Strip::sweepScales() {
  const int64_t group = grid.group;
  std::vector<float> units(count * group), product(count * group);
  for (int64_t g = 0; g < groups; ++g) {
    const float *square = &factor.damped[g * group * cols];
    for (int64_t r = 0; r < count; ++r)
      for (int64_t k = 0; k < group; ++k)
        units[r * group + k] = float(codes(r)[g * group + k] - zero(r, g));
    std::fill(product.begin(), product.end(), 0.0f);
    dense.addProduct(product.data(), group, units.data(), group,
                     square + g * group, cols, count, group, group, 1.0f);
    bool any = false;
    for (int64_t r = 0; r < count; ++r) {
      double along = 0, power = 0;
      for (int64_t k = 0; k < group; ++k) {
        along += double(units[r * group + k]) * slope[r * cols + g * group + k];
        power += double(units[r * group + k]) * product[r * group + k];
      }
      float now = floatFromF16(scale(r, g)), change = 0;
      if (power > 0 && now != 0) {
        uint16_t to = f16FromFloat(float(now - along / power));
        change = floatFromF16(to) - now;
        // Rounded to float16 it may be no better.
        if (std::isfinite(change) && floatFromF16(to) * now > 0 &&
            change * (2 * along + change * power) < 0)
          scale(r, g) = to;
        else
          change = 0;
      }
      any |= change != 0;
      for (int64_t k = 0; k < group; ++k) {
        units[r * group + k] *= change;
        distance[r * cols + g * group + k] += units[r * group + k];
      }
    }
    if (any)
      dense.addProduct(slope.data(), cols, units.data(), group, square, cols,
                       count, cols, group, 1.0f);
  }
}

Rounded roundRows(const DenseKernels &dense, const float *aim, int64_t rows,
                  const GridSpec &grid, const ErrorFactor &factor,
                  const RoundingOptions &options) {
  Rounded out;
  out.grid = grid;
  out.rows = rows;
  out.cols = factor.cols;
  out.codes.resize(rows * out.cols);
  out.scales.resize(rows * (out.cols / grid.group));
  out.zeros.resize(out.scales.size());
  int64_t strips = (rows + kStrip - 1) / kStrip;
  std::vector<double> before(strips), after(strips);
  llvm::parallelFor(0, strips, [&](size_t i) {
    int64_t first = int64_t(i) * kStrip;
    Strip strip(dense, aim, first, std::min(kStrip, rows - first), factor, out);
    strip.round();
    strip.startSweeps();
    before[i] = strip.loss();
    for (int sweep = 0; sweep < options.sweeps; ++sweep) {
      strip.sweepScales();
      strip.sweepCodes();
    }
    after[i] = strip.loss();
  });
  for (int64_t i = 0; i < strips; ++i) {
    out.firstLoss += before[i];
    out.loss += after[i];
  }
  return out;
}

std::vector<float> aimOf(const DenseKernels &dense, const float *weights,
                         int64_t first, int64_t rows, const Moments &moments,
                         const ErrorFactor &factor, float driftShare,
                         float lackShare) {
  const int64_t cols = moments.cols;
  std::vector<float> aim(rows * cols, 0.0f);
  llvm::parallelFor(0, (rows + kStrip - 1) / kStrip, [&](size_t i) {
    int64_t r = int64_t(i) * kStrip, n = std::min(kStrip, rows - r);
    if (driftShare != 0)
      dense.addProduct(&aim[r * cols], cols, weights + r * cols, cols,
                       moments.drift.data(), cols, n, cols, cols, driftShare);
    if (moments.residuals && lackShare != 0)
      dense.axpy(&aim[r * cols], &moments.lack[(first + r) * cols], lackShare, n * cols);
  });
  factor.divide(dense, aim.data(), rows);
  for (int64_t i = 0; i < rows * cols; ++i)
    aim[i] += weights[i];
  return aim;
}

} // namespace sparkc
