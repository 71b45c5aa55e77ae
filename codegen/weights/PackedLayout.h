//===- PackedLayout.h - Where every weight lies in the file -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one index equation of packed weights. Packing, microkernels, the
/// dequantizer and the tests all read it from here.
///
/// A tiled matrix is a sequence of tiles of 16 output rows ("lanes"); tile t
/// starts at t * tileBytes(), a multiple of 64, and is read strictly forward.
/// Its unit is the 64-byte **line**: lane l owns bytes 4l .. 4l+3 of it.
///
/// Float layouts, for column c of lane l (byte offsets from the tile's start):
///
///   TILE16_F32   64*c + 4*l                  float32
///   TILE16_BF16  64*(c/2) + 4*l + 2*(c%2)    bfloat16
///
/// Quantized layouts (w = scale * (code - zero)). Let G = group (32, 64, 128),
/// L = lines a group, g = c / G, r = c % G. Four groups make a **batch**: a
/// head of 192 bytes with their scales and zero points, then their lines.
///
///   batch(g) = (g/4) * (192 + 4*64*L)
///   scale    = batch(g) +       32*(g%4) + 2*l     float16
///   zero     = batch(g) + 128 + 16*(g%4) + l       uint8
///   line(n)  = batch(g) + 192 + 64*L*(g%4) + 64*n  n = 0 .. L-1
///   tileBytes = 192 * ceil(groups/4) + 64*L*groups
///
/// A last batch of fewer groups has a whole head (unused slots are zero) and
/// the lines of the groups it has. A matrix of n < 4 groups is one batch of n:
/// its head has 48n bytes, rounded up to a line, the zero points from 32n on.
///
/// Symmetric layouts, those with a float minimum, and those with scales of two
/// levels have other heads, of H bytes for N groups; else batch(g), line(n) and
/// tileBytes are the same with H for 192 and N for 4:
///
///   form           N   H    w                       in the head, for i = g%N
///   Zero           4  192   s * (code - z)          s, z as above
///   Symmetric      2   64   s * (code - 2^(b-1))    s f16 at       32*i + 2*l
///   Minimum        4  256   s * code + m            s f16 at       32*i + 2*l
///                                                   m f16 at 128 + 32*i + 2*l
///   SuperMinimum   8  320   d*u * code + e*v        d f16 at       2*l
///                                                   e f16 at  32 + 2*l
///                                                   u u8  at  64 + 16*i + l
///                                                   v u8  at 192 + 16*i + l
///   Super         16  320   d*u * (code - 2^(b-1))  d f16 at       2*l
///                                                   u i8  at  64 + 16*i + l
///
/// d*u and e*v are exact in float32; bytes 32..63 of a Super head are zero.
/// (e is minus what GGUF calls dmin.) Codes:
///
///   TILE16_Q8  L = G/4   byte line(r/4) + 4*l + r%4
///   TILE16_Q4  L = G/8   byte line(r/8) + 4*l + r%4;  with h = (r/4)%2 the
///                        low (h = 0) or high (h = 1) nibble
///   TILE16_Q5  L = 5G/32 blocks of 32 columns: one plane line, 4 code lines
///   TILE16_Q6  L = 3G/16 blocks of 16 columns: one plane line, 2 code lines
///
///   TILE16_Q4S, _Q5S, _Q6S, _Q8S   Symmetric; codes as in Q4, Q5, Q6, Q8
///   TILE16_Q4M, _Q5M        Minimum, G = 32; codes as in Q4, Q5
///   TILE16_Q4K, _Q5K        SuperMinimum, G = 32; likewise
///   TILE16_Q6K              Super, G = 16; codes as in Q6
///
/// Code lines of Q5 and Q6 hold the low 4 bits as Q4 does. With e = 1 (Q5) or
/// 2 (Q6) extra bits and m = 4/e code lines a block, code line i of block b is
/// line((m+1)*b + 1 + i), the plane is line((m+1)*b), and the extra bits of
/// the code in byte 4*l + r%4, half h of code line i are bits
/// 4*h + e*i .. 4*h + e*i + e-1 of the plane's byte 4*l + r%4. So one shift of
/// the plane by |4 - 4*h - e*i| (left if positive) and one mask (0x10 or 0x30)
/// bring them above the nibble, in any vector width; the four column bytes of
/// a lane stay together for vpdpbusd, vpmaddubsw and AMX alike.
///
/// Padding rows hold scale 0, code 0 and, where there are zero points, zero 0;
/// padding columns hold code = zero (their activations are 0). Float padding
/// is 0.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PACKEDLAYOUT_H
#define SPARKC_CODEGEN_WEIGHTS_PACKEDLAYOUT_H

#include "sparkc_abi.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace sparkc {

/// Layout ids, as they stand in files and descriptors.
enum class Layout : uint32_t {
  VectorF32 = SPARKC_LAYOUT_VECTOR_F32,
  RowsF32 = SPARKC_LAYOUT_ROWS_F32,
  RowsBF16 = SPARKC_LAYOUT_ROWS_BF16,
  Tile16F32 = SPARKC_LAYOUT_TILE16_F32,
  Tile16BF16 = SPARKC_LAYOUT_TILE16_BF16,
  Tile16Q8 = SPARKC_LAYOUT_TILE16_Q8,
  Tile16Q4 = SPARKC_LAYOUT_TILE16_Q4,
  Tile16Q5 = SPARKC_LAYOUT_TILE16_Q5,
  Tile16Q6 = SPARKC_LAYOUT_TILE16_Q6,
  Tile16Q4M = SPARKC_LAYOUT_TILE16_Q4M,
  Tile16Q5M = SPARKC_LAYOUT_TILE16_Q5M,
  Tile16Q4K = SPARKC_LAYOUT_TILE16_Q4K,
  Tile16Q5K = SPARKC_LAYOUT_TILE16_Q5K,
  Tile16Q6K = SPARKC_LAYOUT_TILE16_Q6K,
  Tile16Q4S = SPARKC_LAYOUT_TILE16_Q4S,
  Tile16Q5S = SPARKC_LAYOUT_TILE16_Q5S,
  Tile16Q6S = SPARKC_LAYOUT_TILE16_Q6S,
  Tile16Q8S = SPARKC_LAYOUT_TILE16_Q8S,
};

/// How codes of a quantized layout become weights; see above.
enum class ScaleForm { Zero, Minimum, SuperMinimum, Super, Symmetric };

/// "tile16_q4" and so on: the ABI's name in lower case.
llvm::StringRef layoutName(Layout layout);
std::optional<Layout> layoutFromName(llvm::StringRef name);
std::optional<Layout> layoutFromId(uint32_t id);
/// Tiles of 16 rows (as opposed to plain rows and vectors)?
bool isTiled(Layout layout);
/// Integer codes with scales?
bool isQuantized(Layout layout);
/// Of a quantized layout.
ScaleForm scaleForm(Layout layout);
inline bool hasMinimum(ScaleForm form) {
  return form == ScaleForm::Minimum || form == ScaleForm::SuperMinimum;
}
inline bool isSuper(ScaleForm form) {
  return form == ScaleForm::Super || form == ScaleForm::SuperMinimum;
}
/// Our own grids: a scale and a zero point a group, stored or the middle code.
inline bool isPlain(ScaleForm form) {
  return form == ScaleForm::Zero || form == ScaleForm::Symmetric;
}
/// The quantized layout of these codes; none where there is no such.
std::optional<Layout> layoutOf(unsigned bits, ScaleForm form);
/// Whether columns a scale may be `group` in a layout (0: of floats), and which
/// may, for messages: "32, 64 or 128".
bool isGroupOf(Layout layout, int64_t group);
const char *groupsOf(Layout layout);
/// Bits of one code (4, 5, 6, 8) or of one float (16, 32).
unsigned bitsPerWeight(Layout layout);
/// 2^(b-1), the zero point of forms that store none (Symmetric, Super).
inline int middleCode(Layout layout) { return 1 << (bitsPerWeight(layout) - 1); }

/// Rows of a tile.
constexpr int64_t kTileRows = 16;
/// Bytes of a line, and the alignment of tiles, rows and tensors.
constexpr int64_t kLineBytes = 64;
/// Where parts of a batch head start: minima (Minimum), the minima's factor,
/// sub-scales and sub-minima of the two-level forms.
constexpr int64_t kHeadMinima = 128;
constexpr int64_t kHeadSuperMinimum = 32;
constexpr int64_t kHeadSubScales = 64;
constexpr int64_t kHeadSubMinima = 192;

inline int64_t alignLine(int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// A run of consecutive tiles that share a numbering of source rows. Lane l of
/// the run's i-th A tile (and B tile) has number j = 16*i + l. It is valid iff
/// j < heads*width and then stands for row
///
///   base + (j / width) * stride + j % width
///
/// of its source matrix; other lanes are padding. A paired run lays its tiles
/// as A0 B0 A1 B1 ..., so that rows that meet in an epilogue share a lane of
/// neighbouring tiles.
///
///   plain       heads=1, width=N
///   RoPE pairs  heads=H, width=R/2, stride=D, baseA=q0, baseB=q0+R/2, paired
///   rest dims   heads=H, width=D-R, stride=D, baseA=q0+R
///   GEGLU       heads=1, width=I, weightA=gate, weightB=up, paired
struct RowRun {
  int64_t heads = 1;
  int64_t width = 0;
  int64_t stride = 0;
  int weightA = 0; ///< index of the source matrix of the A tiles
  int64_t baseA = 0;
  int weightB = -1; ///< of the B tiles; -1: not paired
  int64_t baseB = 0;

  bool paired() const { return weightB >= 0; }
  /// Valid lanes of the A tiles (as many of the B tiles if paired).
  int64_t lanes() const { return heads * width; }
  /// Tiles, counting both of a pair.
  int64_t tiles() const {
    return (lanes() + kTileRows - 1) / kTileRows * (paired() ? 2 : 1);
  }
  bool operator==(const RowRun &o) const {
    return heads == o.heads && width == o.width && stride == o.stride &&
           weightA == o.weightA && baseA == o.baseA && weightB == o.weightB &&
           baseB == o.baseB;
  }
};

/// The source of one lane; `weight` < 0 for padding.
struct SourceRow {
  int weight = -1;
  int64_t row = -1;
  bool isPadding() const { return weight < 0; }
};

/// Where a code or float lies: byte offset in the tile, and its bits there.
/// A Q5 or Q6 code also has extra bits, above the low four, in `highByte`.
struct ElementLocation {
  int64_t byte = 0;
  unsigned shift = 0;
  unsigned bits = 0; ///< bits at `byte` (16 and 32: a little-endian float)
  int64_t highByte = -1;
  unsigned highShift = 0;
  unsigned highBits = 0;
};

/// A matrix as it lies in the payload: what is packed, not the bytes.
struct PackedMatrix {
  Layout layout = Layout::Tile16F32;
  int64_t cols = 0;  ///< K of the source, unpadded
  int64_t group = 0; ///< columns a scale; 0 for float layouts
  std::vector<RowRun> runs;

  /// A vector of n float32 (norm weights).
  static PackedMatrix vector(int64_t n);
  /// Row-major rows (an embedding): RowsF32 or RowsBF16.
  static PackedMatrix rowMajor(Layout layout, int64_t rows, int64_t cols);
  /// Tiles with the given runs.
  static PackedMatrix tiled(Layout layout, int64_t cols, int64_t group,
                            std::vector<RowRun> runs);
  /// Tiles of one plain run of `rows` rows.
  static PackedMatrix plain(Layout layout, int64_t rows, int64_t cols,
                            int64_t group = 0);

  /// Valid rows of all runs.
  int64_t rows() const;
  /// All tiles (tiled layouts), padding lanes included.
  int64_t tiles() const;
  /// K padded to the group (quantized) or to a line (bf16: 2).
  int64_t paddedCols() const;
  int64_t groups() const { return group ? paddedCols() / group : 0; }
  /// Lines of a group's codes, L.
  int64_t groupLines() const;
  /// Bytes of a tile, or of a row of a row-major layout; a multiple of 64.
  int64_t tileBytes() const;
  /// Of a quantized layout: groups of a batch, bytes of its head, and bytes of
  /// a whole batch, the stride from batch to batch.
  int64_t batchGroups() const;
  int64_t headBytes() const;
  /// Where zero points (Zero) or minima (Minimum) start in a head, of forms that
  /// store them.
  int64_t headZeros() const;
  int64_t batches() const {
    return (groups() + batchGroups() - 1) / batchGroups();
  }
  int64_t batchBytes() const;
  /// Bytes of the whole matrix.
  int64_t bytes() const;

  /// Offsets in a tile of group g: its batch's head, its first code line, its
  /// 16 float16 scales (of two-level forms: one-byte sub-scales), its 16 uint8
  /// zero points, float16 minima or one-byte sub-minima.
  int64_t headOffset(int64_t g) const;
  int64_t groupLineOffset(int64_t g) const;
  int64_t groupScaleOffset(int64_t g) const;
  int64_t groupZeroOffset(int64_t g) const;
  /// The index equation: where column c of lane l lies in its tile. Row-major
  /// layouts: lane 0, offset in the row.
  ElementLocation element(int64_t lane, int64_t col) const;

  /// The source of lane `lane` of tile `tile`. In row-major layouts a "tile"
  /// is a row and the lane is 0.
  SourceRow rowOf(int64_t tile, int64_t lane) const;
  /// Run that holds tile `tile`, and the tile's index in that run.
  std::pair<const RowRun *, int64_t> runOf(int64_t tile) const;

  /// Shapes that make no sense (a group that the layout does not have, empty or negative runs, rows outside a source of
  /// `sourceRows[weight]` rows) are errors that say so. Packing relies on it.
  llvm::Error verify(llvm::ArrayRef<int64_t> sourceRows) const;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PACKEDLAYOUT_H
