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

/// Rows that a thread takes at a time: whole sets of 16 lanes. Where there are
/// many and they are long, more of them share what a product reads.
static int64_t rowsOfStrip(int64_t rows, int64_t cols) {
  return rows >= 1024 && cols > RoundingOptions::kManyColumns ? 128 : 64;
}
static constexpr int64_t kLanes = 16;
/// Columns between two updates of all that follow; a multiple of any group.
static constexpr int64_t kBlock = 128;
/// Scales that are tried to either side of the fit's, and how far apart they
/// lie, in codes at the end of the range; every other one with the zero points
/// beside the fit's.
static constexpr int kScaleSteps = 5;
static constexpr float kScaleStep = 0.5f;

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

/// A group of sixteen rows: a scale and a zero point each, and the codes as
/// steps from it.
struct GroupCodes {
  uint16_t scales[kLanes];
  float zeros[kLanes];
  std::vector<float> steps, errors; ///< [group][16]
  float loss[kLanes];
};

/// The rows of one strip.
class Strip {
public:
  Strip(const DenseKernels &dense, const float *aim, int64_t first,
        int64_t count, const ErrorFactor &factor,
        llvm::ArrayRef<ErrorFactor> blocks, Rounded &out)
      : dense(dense), factor(factor), blocks(blocks), out(out), grid(out.grid),
        cols(out.cols), groups(cols / grid.group), first(first), count(count),
        aim(aim + first * cols) {}

  void round();
  void startSweeps();
  void sweepCodes();
  void sweepScales();
  void sweepGroups();
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
  GroupCodes bestCodes(const float *w, const float *importance, const float *u,
                       int64_t ldu) const;

  const DenseKernels &dense;
  const ErrorFactor &factor;
  llvm::ArrayRef<ErrorFactor> blocks; ///< of each group alone
  Rounded &out;
  const GridSpec &grid;
  int64_t cols, groups, first, count;
  const float *aim;
  /// While sweeping: distance to the aim, and its product with S + damp.
  std::vector<float> distance, slope;
};

} // namespace

/// The codes of a group w [group][16] that lose least once errors are handed on
/// by u, and what is behind the group has adapted: the fit of the plain squares
/// first, then scales around it and zero points beside it.
GroupCodes Strip::bestCodes(const float *w, const float *importance,
                            const float *u, int64_t ldu) const {
  const int64_t size = grid.group * kLanes;
  std::vector<uint8_t> fitted(size);
  uint8_t zeros[kLanes];
  float noise[kLanes];
  GroupCodes best, now;
  fitGroups16(grid, w, importance, fitted.data(), best.scales, zeros, noise);
  std::copy_n(zeros, kLanes, best.zeros);
  std::fill_n(best.loss, kLanes, INFINITY);
  best.steps.resize(size);
  best.errors.resize(size);
  now = best;
  std::vector<float> work(size);
  float values[kLanes];
  auto tryNow = [&] {
    for (int64_t l = 0; l < kLanes; ++l)
      values[l] = floatFromF16(now.scales[l]);
    std::copy_n(w, size, work.data());
    dense.roundGroup(work.data(), grid.group, u, ldu, values, now.zeros,
                     float(grid.maxCode()), now.steps.data(),
                     now.errors.data(), now.loss);
    for (int64_t l = 0; l < kLanes; ++l) {
      if (!(now.loss[l] < best.loss[l]))
        continue;
      best.loss[l] = now.loss[l];
      best.scales[l] = now.scales[l];
      best.zeros[l] = now.zeros[l];
      for (int64_t k = 0; k < grid.group; ++k) {
        best.steps[k * kLanes + l] = now.steps[k * kLanes + l];
        best.errors[k * kLanes + l] = now.errors[k * kLanes + l];
      }
    }
  };
  tryNow();
  const GroupCodes from = best;
  const float step = kScaleStep / float(grid.maxCode());
  for (int i = -kScaleSteps; i <= kScaleSteps; ++i)
    for (int z = -1; z <= 1; ++z) {
      if ((i == 0 && z == 0) || (z != 0 && (i % 2 || grid.symmetric)))
        continue;
      for (int64_t l = 0; l < kLanes; ++l) {
        now.scales[l] = f16FromFloat(floatFromF16(from.scales[l]) *
                                     (1 + step * float(i)));
        now.zeros[l] = std::min(std::max(from.zeros[l] + float(z), 0.0f),
                                float(grid.maxCode()));
      }
      tryNow();
    }
  return best;
}

/// Rounds `width` columns of the strip: work [set][width][16] to errors [count
/// rounded up][width], each error divided by its U_jj.
void Strip::roundBlock(int64_t begin, int64_t width, const float *importance,
                       std::vector<float> &work, std::vector<float> &errors) {
  const int64_t group = grid.group;
  for (int64_t set = 0; set * kLanes < count; ++set) {
    float *w = &work[set * width * kLanes];
    int64_t lanes = std::min(kLanes, count - set * kLanes);
    for (int64_t at = 0; at < width; at += group) {
      const int64_t g = (begin + at) / group;
      const float *u = &factor.upper[(begin + at) * cols + begin + at];
      GroupCodes best =
          bestCodes(w + at * kLanes, importance + begin + at, u, cols);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t r = set * kLanes + l;
        scale(r, g) = best.scales[l];
        zero(r, g) = uint8_t(best.zeros[l]);
        for (int64_t k = 0; k < group; ++k) {
          codes(r)[begin + at + k] =
              uint8_t(best.steps[k * kLanes + l] + best.zeros[l]);
          errors[r * width + at + k] = best.errors[k * kLanes + l];
        }
      }
      // What is behind the group in this block.
      const int64_t rest = width - at - group;
      for (int64_t k = 0; k < group && rest; ++k)
        for (int64_t j = 0; j < rest; ++j)
          dense.axpy(w + (at + group + j) * kLanes, &best.errors[k * kLanes],
                     -u[k * cols + group + j], kLanes);
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

/// Rounds each group anew, scale, zero point and codes, to what is best with
/// all other groups as they are.
void Strip::sweepGroups() {
  const int64_t group = grid.group;
  std::vector<float> wanted(count * group), work(group * kLanes);
  for (int64_t g = 0; g < groups; ++g) {
    const ErrorFactor &own = blocks[g];
    std::vector<float> importance(group);
    for (int64_t k = 0; k < group; ++k) {
      float u = own.upper[k * group + k];
      importance[k] = 1 / (u * u);
    }
    // To go by -slope / S would be best, were there no grid.
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(&slope[r * cols + g * group], group, &wanted[r * group]);
    own.divide(dense, wanted.data(), count);
    bool any = false;
    std::vector<float> moves(count * group);
    for (int64_t set = 0; set * kLanes < count; ++set) {
      const int64_t lanes = std::min(kLanes, count - set * kLanes);
      double before[kLanes] = {};
      std::fill(work.begin(), work.end(), 0.0f);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t r = set * kLanes + l;
        for (int64_t k = 0; k < group; ++k) {
          const float to = wanted[r * group + k];
          before[l] += double(to) * slope[r * cols + g * group + k];
          work[k * kLanes + l] = out.value(first + r, g * group + k) - to;
        }
      }
      GroupCodes best =
          bestCodes(work.data(), importance.data(), own.upper.data(), group);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t r = set * kLanes + l;
        if (!(best.loss[l] < before[l] * 0.9999))
          continue;
        any = true;
        const float s = floatFromF16(best.scales[l]);
        for (int64_t k = 0; k < group; ++k) {
          const int64_t c = g * group + k;
          float move = s * best.steps[k * kLanes + l] - out.value(first + r, c);
          moves[r * group + k] = move;
          distance[r * cols + c] += move;
          codes(r)[c] = uint8_t(best.steps[k * kLanes + l] + best.zeros[l]);
        }
        scale(r, g) = best.scales[l];
        zero(r, g) = uint8_t(best.zeros[l]);
      }
    }
    if (any)
      dense.addProduct(slope.data(), cols, moves.data(), group,
                       &factor.damped[g * group * cols], cols, count, cols,
                       group, 1.0f);
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
  // Sweeps move groups as a whole.
  std::vector<ErrorFactor> blocks(options.sweeps ? out.cols / grid.group : 0);
  llvm::parallelFor(0, blocks.size(), [&](size_t g) {
    const int64_t at = int64_t(g) * grid.group;
    std::vector<float> block(grid.group * grid.group);
    for (int64_t k = 0; k < grid.group; ++k)
      std::copy_n(&factor.damped[(at + k) * out.cols + at], grid.group,
                  &block[k * grid.group]);
    ErrorFactor::of(dense, block, grid.group, 1e-6f, blocks[g]);
  });
  const int64_t each = rowsOfStrip(rows, factor.cols);
  int64_t strips = (rows + each - 1) / each;
  std::vector<double> before(strips), after(strips);
  llvm::parallelFor(0, strips, [&](size_t i) {
    int64_t first = int64_t(i) * each;
    Strip strip(dense, aim, first, std::min(each, rows - first), factor, blocks,
                out);
    strip.round();
    strip.startSweeps();
    before[i] = strip.loss();
    for (int sweep = 0; sweep < options.sweeps; ++sweep) {
      strip.sweepScales();
      strip.sweepCodes();
      // Groups find their place at once.
      if (sweep == 0)
        strip.sweepGroups();
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
                         const ErrorFactor &factor, float share) {
  const int64_t cols = moments.cols;
  if (share == 0)
    return std::vector<float>(weights, weights + rows * cols);
  std::vector<float> aim(rows * cols, 0.0f);
  const int64_t each = rowsOfStrip(rows, cols);
  llvm::parallelFor(0, (rows + each - 1) / each, [&](size_t i) {
    int64_t r = int64_t(i) * each, n = std::min(each, rows - r);
    if (!moments.drift.empty())
      dense.addProduct(&aim[r * cols], cols, weights + r * cols, cols,
                       moments.drift.data(), cols, n, cols, cols, share);
    if (moments.residuals)
      dense.axpy(&aim[r * cols], &moments.lack[(first + r) * cols], share,
                 n * cols);
  });
  factor.divide(dense, aim.data(), rows);
  for (int64_t i = 0; i < rows * cols; ++i)
    aim[i] += weights[i];
  return aim;
}

} // namespace sparkc
