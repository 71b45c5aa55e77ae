// AMX: blocks of tokens get kernels on tile registers, tokens one by one those
// of AVX-512-VNNI. Tiles are of the smaller group's columns; up to six bits both
// sources are signed. A block that such kernels read lies token by token.
//
// RUN: sed 's/prefill_block = 1/prefill_block = 6/' %S/../passes/Inputs/two-layers.mlir > %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline="scheme=q4:g32 rules=*.down_proj=q8:g64" --sparkc-fuse-pipeline --sparkc-schedule-pipeline --step-select-microkernel=isa=amx -o %t.step.mlir
// RUN: FileCheck %s --check-prefix=SELECT < %t.step.mlir
// SELECT-DAG: layout "tile16_q4" {{.*}} kernel "dot_q4_avx512vnni"
// SELECT-DAG: layout "tile16_q8" {{.*}} kernel "dot_q8_avx512vnni"
// SELECT-DAG: layout "tile16_q4" {{.*}} kernel "gemm_q4_amx"
// SELECT-DAG: layout "tile16_q8" {{.*}} kernel "gemm_q8_amx"
// SELECT-DAG: step.put %{{.*}}, @block.activations by_token : !step.qvec<8, 32>
// SELECT-DAG: step.block_view @block.activations by_token : <8, 32>
// RUN: sed 's/ by_token//' %t.step.mlir > %t.mixed.mlir
// RUN: not sparkc-opt %t.mixed.mlir --step-lower-to-llvm 2>&1 | FileCheck %s --check-prefix=MIXED
// MIXED: error: {{.*}}kernel 'gemm_q4_amx' reads activations token by token, and these are not

// Of a block that others read too nobody reads so: here the single tiles of the
// first phase (value, gate) have minima, and its pairs (query, key) do not.
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline=scheme=q4:g32 --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.pairs.mlir
// RUN: sed '/func @layer.sliding.prefill/,$s/layout "tile16_q4"\(.*\) units 1 {/layout "tile16_q4m"\1 units 1 {/' %t.pairs.mlir | sparkc-opt --step-select-microkernel=isa=amx | FileCheck %s --check-prefix=READERS
// READERS-LABEL: step.func @layer.sliding.prefill
// READERS:       step.put %{{.*}}, @block.activations : !step.qvec
// READERS:       step.block_view @block.activations : <
// READERS-NOT:   _amx
// READERS:       layout "tile16_q4" {{.*}} paired kernel "gemm_q4_avx512vnni"
// READERS:       layout "tile16_q4m" {{.*}} kernel "gemm_q4m_avx512vnni"
// READERS:       step.phase "gate_proj.in"
// READERS:       step.put %{{.*}}, @block.activations by_token
// READERS:       step.block_view @block.activations by_token
// READERS:       layout "tile16_q4" {{.*}} paired kernel "gemm_q4_amx"

// Symmetric grids; and activations in groups of 16, which tiles do not take: the
// head's, where it computes the logits of all tokens.
// RUN: sed 's/scheme = "\([a-z0-9]*\)"/scheme = "\1", activations = "int8:g32"/' %t.mlir | sparkc-opt --sparkc-graph-pipeline="scheme=q4:g32:sym" --sparkc-fuse-pipeline --sparkc-schedule-pipeline --step-select-microkernel=isa=amx | FileCheck %s --check-prefix=GROUPS
// GROUPS-LABEL: step.func @layer.sliding.prefill
// GROUPS:       layout "tile16_q4s" {{.*}} kernel "gemm_q4s_amx"
// GROUPS-LABEL: step.func entry @prefill
// GROUPS:       step.put %{{.*}}, @block.activations : !step.qvec
// GROUPS:       step.block_view @block.activations : <
// GROUPS-NOT:   gemm_q4s_amx
// GROUPS:       layout "tile16_q4s" {{.*}} kernel "gemm_q4s_avx512vnni"

// RUN: sparkc-opt %t.step.mlir --step-lower-to-llvm | FileCheck %s
// CHECK-NOT: amx.tile
// CHECK-LABEL: llvm.func internal @gemm_q4_amx.
// CHECK:         amx.tile_load {{.*}} into !amx.tile<16x32xi8>
// CHECK:         amx.tile_load {{.*}} into !amx.tile<8x64xi8>
// CHECK:         amx.tile_zero : !amx.tile<16x16xi32>
// CHECK-COUNT-4: amx.tile_muli %{{[^ ]*}}, %{{[^ ]*}}, {{.*}}!amx.tile<16x32xi8>, !amx.tile<8x64xi8>
// CHECK-COUNT-4: amx.tile_store
// CHECK-LABEL: llvm.func internal @gemm_q8_amx.
// CHECK:         amx.tile_muli %{{[^ ]*}}, %{{[^ ]*}} zext, {{.*}}!amx.tile<16x64xi8>, !amx.tile<16x64xi8>

// Of all that the instructions are left.
// RUN: sparkc-opt %t.step.mlir --sparkc-codegen-pipeline=isa=amx | FileCheck %s --check-prefix=LLVM
// LLVM-NOT: amx.tile
// LLVM:     "llvm.x86.tdpbssd.internal"
// LLVM-NOT: amx.tile
// LLVM:     "llvm.x86.tdpbsud.internal"
// LLVM-NOT: amx.tile
// LLVM-NOT: memref
