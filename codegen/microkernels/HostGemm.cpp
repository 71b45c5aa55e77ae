//===- HostGemm.cpp - Products that the host computes ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Block kernels of `--prefill-gemm`: one call of ctx->gemm with what a kernel of
// our own would read and write. The sums are the host's: their order is not that
// of the tile kernels, so neither are their bits.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/weights/PackedLayout.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

template <Layout layout>
static void gemmOnHost(Emitter &e, const BlockOperands &in) {
  Value gemm = e.ctxField(e.ptr(), offsetof(sparkc_ctx, gemm));
  // In the order of sparkc_gemm_fn.
  emitHostCall(e, gemm,
               {in.tiles, e.c(e.i32(), int64_t(layout)), in.count,
                e.c(in.cols), in.x, e.mulC(in.quads, kQuad), in.f,
                e.c(in.fRow)});
}

static const BlockKernel hostKernels[] = {
    {"gemm_f32_host", "tile16_f32", SPARKC_ISA_AVX2,
     gemmOnHost<Layout::Tile16F32>, /*onHost=*/true, /*pairs=*/false,
     /*features=*/0, kMacroTiles},
    {"gemm_bf16_host", "tile16_bf16", SPARKC_ISA_AVX2,
     gemmOnHost<Layout::Tile16BF16>, /*onHost=*/true, /*pairs=*/false,
     /*features=*/0, kMacroTiles},
};

ArrayRef<BlockKernel> sparkc::hostBlockKernels() { return hostKernels; }
