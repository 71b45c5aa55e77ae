// step-add-prefill: a twin of each function for blocks of tokens. What prepares
// an activation runs for each token, then each tile meets all of them.
//
// DEFINE: %{schedule} = sparkc-opt --sparkc-graph-pipeline=scheme=q4:g32 --sparkc-fuse-pipeline --spark-to-step
// RUN: sed 's/prefill_block = 1/prefill_block = 6/' %S/Inputs/two-layers.mlir > %t.mlir
// RUN: %{schedule} --step-add-prefill %t.mlir -o %t.step.mlir
// RUN: FileCheck %s < %t.step.mlir
// RUN: FileCheck %s --check-prefix=SLOTS < %t.step.mlir
// The text is read back, calls without tables too.
// RUN: sparkc-opt %t.step.mlir | diff - %t.step.mlir
// The barriers of a step are counted without those of the prefill.
// RUN: sparkc-opt %t.step.mlir --step-plan-arena --step-select-microkernel --step-lower-to-llvm | FileCheck %s --check-prefix=BARRIERS
// BARRIERS: barriers = 12
// A block of one token needs no entry of its own.
// RUN: %{schedule} --step-add-prefill %S/Inputs/two-layers.mlir | FileCheck %s --check-prefix=ONE
// ONE-NOT: prefill {
// ONE-NOT: row 576

// A row of 128 floats and a line for each of 6 tokens; two quads, each with room
// for four !step.qvec of 128 codes, a line of scales and a line of sums, which take
// more than their quad.
// SLOTS-DAG: step.slot @x size <3456> row 576
// SLOTS-DAG: step.slot @q_k_v_proj.0 size <3456> row 576
// SLOTS-DAG: step.slot @q_k_v_proj.1 size <3456> row 576
// SLOTS-DAG: step.slot @gate_proj.0 size <3456> row 576
// SLOTS-DAG: step.slot @block.attention size <3456> row 576
// SLOTS-DAG: step.slot @block.rope.0 size <3456> row 576
// SLOTS-DAG: step.slot @block.rope.1 size <3456> row 576
// SLOTS-DAG: step.slot @block.activations size <2048>
// SLOTS-DAG: step.slot @attention size <512 + 4 * capacity>{{$}}

// CHECK-LABEL: step.func @layer.sliding.prefill {
// CHECK-NEXT:    step.phase "q_k_v_proj.in" other {
// CHECK-NEXT:      step.tokens {
// CHECK-NEXT:        %[[X:.*]] = step.view @x : <8>
// CHECK-NEXT:        %[[N:.*]] = step.rms_norm %[[X]] weight 0 eps
// CHECK-NEXT:        %[[Q:.*]] = step.quantize %[[N]] : <8> -> <8, 32>
// CHECK-NEXT:        step.put %[[Q]], @block.activations : !step.qvec<8, 32>
// CHECK:         step.barrier{{$}}
// CHECK-NEXT:    step.phase "q_k_v_proj" linear {
// CHECK-NEXT:      %[[B:.*]] = step.block_view @block.activations : <8, 32>
// CHECK-NEXT:      step.stream 0 bytes 1984
// CHECK-NEXT:      step.tiles %[[B]] at 64 layout "tile16_q4" cols 8 group 32 units 1 paired {
// CHECK-NEXT:      ^bb0(%[[P:.*]]: vector<16xf32>, %[[R:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        %[[T:.*]] = step.view @block.rope.1 : <32>
// CHECK-NEXT:        %{{.*}}, %{{.*}} = step.rotate %[[P]], %[[R]] by %[[T]][%[[J]]] : <32>
// CHECK-NEXT:        step.store
// CHECK-NEXT:        step.store
// CHECK-NEXT:      } : !step.block<8, 32>
// CHECK:           step.kv_store key
// CHECK:           step.kv_store value
// CHECK:         step.barrier
// CHECK-NEXT:    step.phase "attention" attention {
// CHECK-NEXT:      step.block_attention @q_k_v_proj.0, @block.attention cache {{.*}} heads 2 window 3
// CHECK:         step.barrier
// CHECK-NEXT:    step.phase "out_proj.in" other {
// CHECK-NEXT:      step.tokens {
// CHECK-NEXT:        %[[A:.*]] = step.view @block.attention : <8>
// CHECK-NEXT:        %[[G:.*]] = step.view @q_k_v_proj.1 : <2>
// CHECK-NEXT:        step.head_gate %[[A]], %[[G]]
// CHECK:         step.phase "out_proj" linear {
// CHECK:             step.residual {{.*}}, @x[
// CHECK:         step.phase "gate_proj.in" other {
// CHECK:         step.phase "gate_proj" linear {
// CHECK:         step.phase "down_proj.in" other {
// CHECK:         step.phase "down_proj" linear {
// CHECK:         step.barrier
// CHECK-NEXT:    step.return

// CHECK-LABEL: step.func entry @prefill {
// CHECK-NEXT:    step.phase "rope" other {
// CHECK-NEXT:      step.tokens {
// CHECK-NEXT:        %[[R0:.*]] = step.rope_table <theta = 5.000000e+06, width = 2> : <32>
// CHECK-NEXT:        step.keep %[[R0]], @block.rope.0 : <32>
// CHECK-NEXT:        %[[R1:.*]] = step.rope_table <theta = 1.000000e+04, width = 4> : <32>
// CHECK-NEXT:        step.keep %[[R1]], @block.rope.1 : <32>
// CHECK:         step.phase "embed" other {
// CHECK-NEXT:      step.tokens {
// CHECK-NEXT:        step.embed @x
// Each thread goes on with the tokens it has embedded: no barrier.
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    step.call @layer.sliding.prefill() layer 0 weights 1536 kv <0>{{$}}
// CHECK-NEXT:    step.call @layer.full.prefill() layer 1 weights 4864 kv <2560>{{$}}
// CHECK-NEXT:    step.phase "head" linear when last {
// CHECK:           step.view @x last : <8>
// CHECK:           step.logits
// CHECK:         step.phase "head.in" other when all {
// CHECK:         step.barrier
// CHECK-NEXT:    step.phase "head.all" linear when all {
// CHECK:           step.logits
// CHECK:         step.barrier
// CHECK-NEXT:    step.return
