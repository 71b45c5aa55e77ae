// step-select-microkernel: every layout on every instruction set.
//
// RUN: sparkc-opt %s --step-select-microkernel=isa=avx2 | FileCheck %s -DISA=avx2
// RUN: sparkc-opt %s --step-select-microkernel=isa=avxvnni | FileCheck %s -DISA=avxvnni
// AVX-512 machines without VNNI have no AVX-VNNI either.
// RUN: sparkc-opt %s --step-select-microkernel=isa=avx512 | FileCheck %s -DISA=avx2
// RUN: sparkc-opt %s --step-select-microkernel=isa=avx512vnni | FileCheck %s -DISA=avx512vnni
// RUN: sparkc-opt %s --step-select-microkernel=isa=amx | FileCheck %s -DISA=avx512vnni
// Without an option: what every machine has.
// RUN: sparkc-opt %s --step-select-microkernel | FileCheck %s -DISA=avx2
// Prefetching is a choice of its own, and only integer tiles have it.
// RUN: sparkc-opt %s --step-select-microkernel=ahead=512 | FileCheck %s --check-prefix=NEAR
// RUN: sparkc-opt %s --step-select-microkernel --step-select-microkernel=ahead=0 | FileCheck %s --check-prefix=NOWHERE
// NEAR: kernel "dot_f32" {
// NEAR: kernel "dot_q4_avx2" ahead 512 {
// RUN: sparkc-opt %s --step-select-microkernel=once | FileCheck %s --check-prefix=ONCE
// ONCE: kernel "dot_q4_avx2" ahead 3072 once {
// RUN: sparkc-opt %s --step-select-microkernel="once serial" | sparkc-opt | FileCheck %s --check-prefix=SERIAL
// RUN: sparkc-opt %s --step-select-microkernel=serial --step-select-microkernel | FileCheck %s -DISA=avx2
// SERIAL: kernel "dot_f32" {
// SERIAL: kernel "dot_q4_avx2" ahead 3072 once serial {
// NOWHERE-NOT: ahead
// Names and distances alone change.
// RUN: sparkc-opt %s | sed 's/ kernel "[a-z0-9_]*"//; s/ ahead [0-9]*//' > %t.before.mlir
// RUN: sparkc-opt %s --step-select-microkernel | sed 's/ kernel "[a-z0-9_]*"//; s/ ahead [0-9]*//' | diff %t.before.mlir -
//
// RUN: not sparkc-opt %s --step-select-microkernel=isa=avx1024 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown isa 'avx1024'
// RUN: not sparkc-opt %s --step-select-microkernel=isa= 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: unknown isa ''
// RUN: sed 's/tile16_bf16/rows_bf16/' %s | not sparkc-opt --step-select-microkernel=isa=avx512vnni 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: error: 'step.tiles' op no kernel reads layout 'rows_bf16' on avx512vnni

// CHECK: layout "tile16_f32" cols 128 group 0 units 1 kernel "dot_f32" {
// CHECK: layout "tile16_bf16" cols 128 group 0 units 1 kernel "dot_bf16" {
// CHECK: layout "tile16_q4" cols 128 group 64 units 1 kernel "dot_q4_[[ISA]]" ahead 3072 {
// CHECK: layout "tile16_q5" cols 128 group 64 units 1 kernel "dot_q5_[[ISA]]" ahead 3072 {
// CHECK: layout "tile16_q6" cols 128 group 64 units 1 kernel "dot_q6_[[ISA]]" ahead 3072 {
// CHECK: layout "tile16_q8" cols 128 group 64 units 1 paired kernel "dot_q8_[[ISA]]" ahead 3072 {
step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    step.tiles %x at 0 layout "tile16_f32" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    step.tiles %q at 0 layout "tile16_q4" cols 128 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
    step.tiles %q at 0 layout "tile16_q5" cols 128 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
    step.tiles %q at 0 layout "tile16_q6" cols 128 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
    // One that was chosen for another machine is chosen again.
    step.tiles %q at 0 layout "tile16_q8" cols 128 group 64 units 1 paired
      kernel "dot_q8_nowhere" {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}
