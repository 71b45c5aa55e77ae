// The barriers of one decode step of the 1.7B model, 21 sliding layers and 7
// full ones: 142 of the 145 that a step may have. Each op counts once for every
// call of its function.
//
// RUN: %python %S/Inputs/whole-1.7b.py > %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline=scheme=q4 --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.q4.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline=scheme=bf16 --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.bf16.mlir
// RUN: FileCheck %s < %t.q4.mlir
// RUN: FileCheck %s < %t.bf16.mlir

// Five in each of two functions, which all layers share.
// CHECK-LABEL: step.func @layer.sliding {
// CHECK-COUNT-5: step.barrier
// CHECK-NOT:     step.{{barrier|call}}
// CHECK-LABEL: step.func @layer.full {
// CHECK-COUNT-5: step.barrier
// CHECK-NOT:     step.{{barrier|call}}
// Two around 28 calls: 2 + 28 * 5.
// CHECK-LABEL: step.func entry @step {
// CHECK:         step.phase "embed" other {
// CHECK:         step.barrier
// CHECK-NEXT:    step.call @layer.sliding(%[[S:.*]]) layer 0 {{.*}} kv <0> :
// CHECK-NEXT:    step.call @layer.sliding(%[[S]]) layer 1 {{.*}} kv <1048576> :
// CHECK-NEXT:    step.call @layer.sliding(%[[S]]) layer 2 {{.*}} kv <2097152> :
// CHECK-NEXT:    step.call @layer.full(%[[F:.*]]) layer 3 {{.*}} kv <3145728> :
// CHECK-NEXT:    step.call @layer.sliding(%[[S]]) layer 4 {{.*}} kv <3145728 + 2048 * capacity> :
// CHECK-NEXT:    step.call @layer.sliding(%[[S]]) layer 5
// CHECK-NEXT:    step.call @layer.sliding(%[[S]]) layer 6
// CHECK-NEXT:    step.call @layer.full(%[[F]]) layer 7
// CHECK-COUNT-19: step.call
// CHECK-NEXT:    step.call @layer.full(%[[F]]) layer 27 {{.*}} kv <22020096 + 12288 * capacity> :
// CHECK-NEXT:    step.phase "head" linear {
// CHECK:         step.barrier
// CHECK-NOT:     step.{{barrier|call}}
// CHECK:         step.return
// CHECK-NOT:   step.func

// RUN: grep -c "step.call @layer.sliding" %t.q4.mlir | FileCheck %s --check-prefix=SLIDING
// SLIDING: {{^21$}}
// RUN: grep -c "step.call @layer.full" %t.q4.mlir | FileCheck %s --check-prefix=FULL
// FULL: {{^7$}}

// The same number goes into the object, where it is counted anew.
// RUN: sparkc-opt %t.q4.mlir --step-select-microkernel --step-lower-to-llvm | FileCheck %s --check-prefix=COUNTED
// COUNTED: step.descriptor {{.*}} barriers = 142 : i64

// What a step streams: packed codes, scales, zero points and norms, all of them
// once. 1,707,657,216 parameters but for 57 norms are weights of linears; the
// embedding's rows lie before all that and are not streamed.
// RUN: FileCheck %s --check-prefix=BYTES < %t.q4.mlir
// BYTES: step.pack @rows.embedding at 0
// BYTES: step.pack @pack.layers.0.input_layernorm at [[#FIRST:]]
// BYTES: step.descriptor {{.*}} bytes_per_step = [[#BYTES:934529024]] : i64
// BYTES-SAME: full_layers = 7 : i64
// BYTES-SAME: linear_weights = 1707540480 : i64
// BYTES-SAME: payload = [[#FIRST+BYTES]] : i64
// BYTES-SAME: ring = 512 : i64
