// step-select-microkernel: for each layout the best kernel that the instruction
// set can run.
//
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4 rules=*.g_proj=f32,*.out_proj=q5:g32,*.down_proj=q8,lm_head=q6" --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.mlir
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=avx2 | FileCheck %s -DISA=avx2
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=avxvnni | FileCheck %s -DISA=avxvnni
// AVX-512 without VNNI has no AVX-VNNI either.
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=avx512 | FileCheck %s -DISA=avx2
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=avx512vnni | FileCheck %s -DISA=avx512vnni
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=amx | FileCheck %s -DISA=avx512vnni
// A second choice replaces the first.
// RUN: sparkc-opt %t.mlir --step-select-microkernel=isa=avx512vnni --step-select-microkernel=isa=avx2 | FileCheck %s -DISA=avx2
// RUN: not sparkc-opt %t.mlir --step-select-microkernel=isa=sse2 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown isa 'sse2'

// CHECK: step.tiles {{.*}} layout "tile16_q4" {{.*}} paired kernel "dot_q4_[[ISA]]" ahead 3072 {
// CHECK: step.tiles {{.*}} layout "tile16_f32" {{.*}} kernel "dot_f32" {
// CHECK: step.tiles {{.*}} layout "tile16_q5" {{.*}} kernel "dot_q5_[[ISA]]" ahead 3072 {
// CHECK: step.tiles {{.*}} layout "tile16_q4" {{.*}} paired kernel "dot_q4_[[ISA]]" ahead 3072 {
// CHECK: step.tiles {{.*}} layout "tile16_q8" {{.*}} kernel "dot_q8_[[ISA]]" ahead 3072 {
// CHECK: step.tiles {{.*}} layout "tile16_q6" {{.*}} kernel "dot_q6_[[ISA]]" ahead 3072 {
// CHECK-NOT: step.tiles

// The kernels become code in which nothing dynamic is left, on each of them.
// RUN: sparkc-opt %t.mlir --sparkc-codegen-pipeline=isa=avx2 | FileCheck %s --check-prefix=AVX2
// RUN: sparkc-opt %t.mlir --sparkc-codegen-pipeline=isa=avxvnni | FileCheck %s --check-prefix=VNNI256
// RUN: sparkc-opt %t.mlir --sparkc-codegen-pipeline=isa=avx512vnni | FileCheck %s --check-prefix=VNNI512
// AVX2-NOT:    vpdpbusd
// AVX2:        llvm.func internal @layer.sliding.q_k_v_proj
// AVX2-NOT:    vpdpbusd
// AVX2:        "llvm.x86.avx2.pmadd.ub.sw"
// AVX2-NOT:    vpdpbusd
// VNNI256-NOT: vpdpbusd.512
// VNNI256:     "llvm.x86.avx512.vpdpbusd.256"
// VNNI256-NOT: vpdpbusd.512
// VNNI512-NOT: vpdpbusd.256
// VNNI512:     "llvm.x86.avx512.vpdpbusd.512"
// VNNI512-NOT: vpdpbusd.256
