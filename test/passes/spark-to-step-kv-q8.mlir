// A quantized cache: epilogues leave the token's key and value in slots, since
// no tile need hold the 16 dims that share a scale; attention quantizes them.
// There is no phase and no barrier more than with f16.
//
// RUN: sed -e 's/ring 512 : f16/ring 576 : i8/' %S/Inputs/layer-1.7b.mlir > %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline="scheme=q4" --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.step.mlir
// RUN: FileCheck %s < %t.step.mlir
// RUN: FileCheck %s --check-prefix=BYTES < %t.step.mlir

// CHECK-LABEL: step.func @layer.sliding
// CHECK:       step.phase "q_k_v_proj" linear {
// CHECK:         step.rotate
// CHECK-NEXT:    step.store %first, @q_k_v_proj.0
// CHECK-NEXT:    step.store %second, @q_k_v_proj.0
// CHECK:         step.rotate
// CHECK-NEXT:    step.store %first, @token.key[%{{.*}}] lanes <heads = 2, width = 128, stride = 256>
// CHECK-NEXT:    step.store %second, @token.key[%{{.*}}] lanes <heads = 2, width = 128, stride = 256, base = 128>
// CHECK:         step.store %{{.*}}, @token.value[%{{.*}}] lanes <heads = 2, width = 256, stride = 256>
// CHECK-NOT:     step.kv_store
// CHECK:       step.barrier
// CHECK-NEXT:  step.phase "attention" attention {
// CHECK-NEXT:    step.attention @q_k_v_proj.0, @attention cache <heads = 2, head_dim = 256, positions = 576, element = i8> token @token.key, @token.value heads 8 window 512
// CHECK-NEXT:  }
// CHECK-NEXT:  step.barrier
// CHECK-NEXT:  step.phase "out_proj" linear {

// A position: 2 heads of 2 (256 codes and 16 scales of 2 bytes).
// BYTES-DAG: step.slot @token.key size <2048>
// BYTES-DAG: step.slot @token.value size <2048>
// BYTES-DAG: step.descriptor {{.*}} kv = #step.affine<663552>, kv_type = "q8"
