// RUN: sparkc-opt %s | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --emit-bytecode | sparkc-opt | FileCheck %s

// CHECK: func.func private @vec(!step.vec<1>) -> !step.vec<2048>
func.func private @vec(!step.vec<1>) -> !step.vec<2048>
// CHECK: func.func private @qvec(!step.qvec<2048, 64>) -> !step.qvec<6, 32>
func.func private @qvec(!step.qvec<2048, 64>) -> !step.qvec<6, 32>
// i8 is what a group holds where nothing is said.
// CHECK: func.func private @pairs(!step.qvec<2048, 64, bf16>) -> !step.qvec<6, 32>
func.func private @pairs(!step.qvec<2048, 64, bf16>) -> !step.qvec<6, 32, i8>
// CHECK: func.func private @blocks(!step.block<2048, 64, bf16>) -> !step.block<6, 0>
func.func private @blocks(!step.block<2048, 64, bf16>) -> !step.block<6, 0>
