// step-select-microkernel: blocks of floats where a library of the host multiplies.
//
// RUN: sparkc-opt %s --step-select-microkernel=isa=avx512vnni | FileCheck %s
// RUN: sed 's/tile16_bf16" cols 128 group 0/tile16_q4" cols 128 group 64/; s/block<128, 0>/block<128, 64>/' %s \
// RUN:   | not sparkc-opt --step-select-microkernel=isa=avx512vnni 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: error: --prefill-gemm=onednn multiplies f32 and bf16 weights only; these have layout 'tile16_q4'
// RUN: sed 's/"onednn"/"mkl"/' %s | not sparkc-opt 2>&1 | FileCheck %s --check-prefix=LIBRARY
// LIBRARY: error: 'spark.config' op 'prefill_gemm' must be "onednn", not "mkl"

spark.config {vocab = 24 : i64, hidden = 128 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 8 : i64, scheme = "bf16", prefill_gemm = "onednn"}
step.slot @x size <8192>
step.func @f {
  step.phase "p" linear {
    %x = step.block_view @x : !step.block<128, 0>
    // CHECK: layout "tile16_bf16" cols 128 group 0 units 1 kernel "gemm_bf16_host" {
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.block<128, 0>
  }
  step.phase "one" linear {
    %y = step.view @x : !step.vec<128>
    // A single token has the kernels of its own.
    // CHECK: layout "tile16_f32" cols 128 group 0 units 1 kernel "dot_f32" {
    step.tiles %y at 0 layout "tile16_f32" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}
