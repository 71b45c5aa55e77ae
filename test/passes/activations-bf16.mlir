// Activations of bf16: `activations` of spark.config decides the type that
// step.quantize gives, and with it kernels and sizes of slots.
//
// RUN: sed 's/prefill_block = 1/prefill_block = 6/; s/ring 512/ring 576/; s/scheme = "\([a-z0-9]*\)"/scheme = "\1", activations = "bf16"/' %S/Inputs/layer-1.7b.mlir > %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline="scheme=q4 rules=*.g_proj=f32,*.out_proj=q5:g32,*.down_proj=q8,lm_head=q6" --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.step.mlir
// RUN: FileCheck %s < %t.step.mlir
// RUN: FileCheck %s --check-prefix=SLOTS < %t.step.mlir
// The text is read back.
// RUN: sparkc-opt %t.step.mlir | diff - %t.step.mlir
//
// Which kernel does not depend on VNNI, but on AVX-512 and on AVX512-BF16.
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel=isa=avx2 | FileCheck %s --check-prefix=KERNELS -DISA=avx2
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel="isa=avxvnni bf16" | FileCheck %s --check-prefix=KERNELS -DISA=avx2
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel=isa=avx512 | FileCheck %s --check-prefix=KERNELS -DISA=avx512
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel=isa=avx512vnni | FileCheck %s --check-prefix=KERNELS -DISA=avx512
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel="isa=avx512vnni bf16" | FileCheck %s --check-prefix=KERNELS -DISA=avx512bf16
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel="isa=amx bf16" | FileCheck %s --check-prefix=KERNELS -DISA=avx512bf16
//
// They become code in which nothing dynamic is left.
// RUN: sparkc-opt %t.step.mlir --sparkc-codegen-pipeline=isa=avx2 | FileCheck %s --check-prefix=FLOATS
// RUN: sparkc-opt %t.step.mlir --sparkc-codegen-pipeline="isa=avx512vnni bf16" | FileCheck %s --check-prefix=PAIRS
// FLOATS-NOT: llvm.x86.{{avx512|vp}}
// PAIRS:      "llvm.x86.avx512.permvar.hi.512"
// PAIRS:      "llvm.x86.avx512bf16.dpbf16ps.512"
//
// Where no matrix is quantized there is nothing to round.
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline=scheme=f32 --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s --check-prefix=NONE
// NONE-NOT: activations = "bf16"
// RUN: sed 's/activations = "bf16"/activations = "f16"/' %t.mlir | not sparkc-opt 2>&1 | FileCheck %s --check-prefix=F16
// F16: error: 'spark.config' op 'activations' must be "bf16", "int8:g32" or "int8:g64", not "f16"
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel=isa=avx2 | sed 's/"dot_q4_a16_avx2"/"dot_q4_avx2"/' | not sparkc-opt --step-lower-to-llvm 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: 'step.tiles' op kernel 'dot_q4_avx2' does not read layout 'tile16_q4' with activations '!step.qvec<2048, 64, bf16>'

// CHECK: spark.config {activations = "bf16"
// CHECK-LABEL: step.func @layer.sliding {
// CHECK:       %[[X:.*]] = step.quantize %[[N:.*]] : <2048> -> <2048, 64, bf16>
// CHECK:       step.tiles %[[X]] {{.*}} layout "tile16_q4" cols 2048 group 64
// CHECK:       } : !step.qvec<2048, 64, bf16>
// Float rows of the same linear take it as it was.
// CHECK:       step.tiles %[[N]] {{.*}} layout "tile16_f32"
// CHECK:       } : !step.vec<2048>
// CHECK:       step.quantize %{{.*}} : <2048> -> <2048, 32, bf16>
// CHECK:       step.quantize %{{.*}} : <6656> -> <6656, 64, bf16>
// CHECK-LABEL: step.func @layer.sliding.prefill {
// CHECK:       step.put %{{.*}}, @block.activations : !step.qvec<2048, 64, bf16>
// CHECK:       step.block_view @block.activations : <2048, 64, bf16>
// CHECK:       } : !step.block<2048, 64, bf16>

// Two quads: 4 tokens of 6656 halves, and 104 sums for each.
// SLOTS: step.slot @block.activations size <109824>

// KERNELS: layout "tile16_q4" {{.*}} kernel "dot_q4_a16_[[ISA]]" ahead 3072 {
// KERNELS: layout "tile16_f32" {{.*}} kernel "dot_f32" {
// KERNELS: layout "tile16_q5" {{.*}} kernel "dot_q5_a16_[[ISA]]" ahead 3072 {
// KERNELS: layout "tile16_q8" {{.*}} kernel "dot_q8_a16_[[ISA]]" ahead 3072 {
// KERNELS: layout "tile16_q4" {{.*}} kernel "gemm_q4_a16_[[ISA]]" {
// KERNELS: layout "tile16_q5" {{.*}} kernel "gemm_q5_a16_[[ISA]]" {
// KERNELS: layout "tile16_q8" {{.*}} kernel "gemm_q8_a16_[[ISA]]" {
// KERNELS: layout "tile16_q6" {{.*}} kernel "dot_q6_a16_[[ISA]]" ahead 3072 {
