// The ops of a prefill, on blocks of tokens.
//
// RUN: sparkc-opt %s | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --emit-bytecode | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --mlir-print-op-generic | sparkc-opt | FileCheck %s

// CHECK: func.func private @takes_block(!step.block<2048, 64>) -> !step.block<6, 0>
func.func private @takes_block(!step.block<2048, 64>) -> !step.block<6, 0>

// CHECK: step.slot @x size <4608> row 576 at 64
step.slot @x size <4608> row 576 at 64
step.slot @rope size <4608> row 576
step.slot @out size <4608> row 576
step.slot @block size <4096>

// CHECK-LABEL: step.func @layer.prefill {
step.func @layer.prefill {
  // CHECK-NEXT: step.phase "in" other when all {
  step.phase "in" other when all {
    // CHECK-NEXT: step.tokens {
    step.tokens {
      // CHECK-NEXT: %[[T:.*]] = step.rope_table <theta = 1.000000e+04, width = 32> : <32>
      %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
      // CHECK-NEXT: step.keep %[[T]], @rope : <32>
      step.keep %t, @rope : !step.vec<32>
      // CHECK-NEXT: %[[X:.*]] = step.view @x : <96>
      %x = step.view @x : !step.vec<96>
      // CHECK-NEXT: step.put %[[X]], @block : !step.vec<96>
      step.put %x, @block : !step.vec<96>
      // CHECK-NEXT: %[[Q:.*]] = step.quantize %[[X]] : <96> -> <96, 64>
      %q = step.quantize %x : !step.vec<96> -> !step.qvec<96, 64>
      // CHECK-NEXT: step.put %[[Q]], @block : !step.qvec<96, 64>
      step.put %q, @block : !step.qvec<96, 64>
      // CHECK-NEXT: step.put %[[Q]], @block by_token : !step.qvec<96, 64>
      step.put %q, @block by_token : !step.qvec<96, 64>
    }
  }
  step.barrier
  // CHECK: step.phase "tiles" linear {
  step.phase "tiles" linear {
    // CHECK-NEXT: step.block_view @block by_token : <96, 64>
    step.block_view @block by_token : !step.block<96, 64>
    // CHECK-NEXT: %[[B:.*]] = step.block_view @block : <96, 64>
    %b = step.block_view @block : !step.block<96, 64>
    // CHECK-NEXT: step.tiles %[[B]] at 512 layout "tile16_q4" cols 96 group 64 units 2 kernel "gemm_q4_avx2" {
    step.tiles %b at 512 layout "tile16_q4" cols 96 group 64 units 2
      kernel "gemm_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %j: index):
      // CHECK: step.view @rope : <32>
      %t = step.view @rope : !step.vec<32>
    // CHECK-NEXT: } : !step.block<96, 64>
    } : !step.block<96, 64>
  }
  step.barrier
  // CHECK: step.block_attention @x, @out cache <heads = 1, head_dim = 32, positions = 32, element = f16> heads 3 window 16 scale 1.250000e-01 chunk 64
  step.phase "attention" attention {
    step.block_attention @x, @out
      cache <heads = 1, head_dim = 32, positions = 32, element = f16>
      heads 3 window 16 scale 0.125 chunk 64
  }
  step.barrier
  step.return
}

// CHECK-LABEL: step.func entry @prefill {
step.func entry @prefill {
  // CHECK-NEXT: step.call @layer.prefill() layer 0 weights 64 kv <0>{{$}}
  step.call @layer.prefill() layer 0 weights 64 kv <0>
  // CHECK-NEXT: step.phase "head" linear when last {
  step.phase "head" linear when last {
    // CHECK-NEXT: step.view @x last : <96>
    %x = step.view @x last : !step.vec<96>
  }
  step.barrier
  step.return
}
