// Groups of int8 activations that are smaller than those of the weights:
// `activations` of spark.config bounds them, whatever the grids are.
//
// RUN: sed 's/prefill_block = 1/prefill_block = 6/; s/ring 512/ring 576/; s/scheme = "\([a-z0-9]*\)"/scheme = "\1", activations = "int8:g64"/' %S/Inputs/layer-1.7b.mlir > %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-graph-pipeline="scheme=q4:g128 rules=*.out_proj=q5:g32" --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s '-D$GROUP=64' '-D$HEAD=32'
// RUN: sed 's/int8:g64/int8:g32/' %t.mlir | sparkc-opt --sparkc-graph-pipeline="scheme=q4:g128 rules=*.out_proj=q5:g32" --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s '-D$GROUP=32' '-D$HEAD=16'

// CHECK-LABEL: step.func @layer.sliding {
// CHECK:       step.quantize %{{.*}} : <2048> -> <2048, [[$GROUP]]>
// CHECK:       step.tiles %{{.*}} layout "tile16_q4" cols 2048 group 128
// CHECK:       } : !step.qvec<2048, [[$GROUP]]>
// Of weights in smaller groups it stays theirs.
// CHECK:       step.quantize %{{.*}} : <2048> -> <2048, 32>
// CHECK:       step.tiles %{{.*}} layout "tile16_q5" cols 2048 group 32
// CHECK:       step.quantize %{{.*}} : <2048> -> <2048, [[$GROUP]]>
// CHECK:       step.quantize %{{.*}} : <6656> -> <6656, [[$GROUP]]>
// CHECK:       step.tiles %{{.*}} layout "tile16_q4" cols 6656 group 128
// CHECK-LABEL: step.func @layer.sliding.prefill {
// CHECK:       step.block_view @block.activations : <2048, [[$GROUP]]>
// CHECK:       } : !step.block<2048, [[$GROUP]]>
// The head's input, of which a prompt has one, in half as many.
// CHECK-LABEL: step.func entry @step {
// CHECK:       step.quantize %{{.*}} : <2048> -> <2048, [[$HEAD]]>
// CHECK:       step.tiles %{{.*}} layout "tile16_q4" cols 2048 group 128
