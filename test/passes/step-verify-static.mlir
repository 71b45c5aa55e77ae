// step-verify-static: what it lets pass and what it refuses, at both stages.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics --step-verify-static
//
// A whole model, scheduled and lowered; the pipeline runs the pass twice.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline --sparkc-fuse-pipeline --sparkc-schedule-pipeline -o %t.step.mlir
// RUN: sparkc-opt %t.step.mlir --step-select-microkernel --step-verify-static --mlir-disable-threading -o /dev/null
// RUN: sparkc-opt %t.step.mlir --sparkc-codegen-pipeline -o %t.llvm.mlir
// RUN: sparkc-opt %t.llvm.mlir --step-verify-static | diff %t.llvm.mlir -
// The same without a plan of the arena.
// RUN: sed 's/\(step.slot .*\) at [0-9]*$/\1/' %t.step.mlir | not sparkc-opt --sparkc-codegen-pipeline 2>&1 | FileCheck %s
// CHECK: error: 'step.slot' op has no offset; run step-plan-arena

//===--- Let pass ---===//

spark.weight @w : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
step.slot @x size <512> at 0
llvm.func @__tsan_read_range(!llvm.ptr, i64)
llvm.func internal @mine(%p: !llvm.ptr, %v: vector<16xf32>) {
  llvm.return
}
llvm.func internal @f(%p: !llvm.ptr, %wait: !llvm.ptr, %v: vector<16xf32>) {
  %size = llvm.mlir.constant(64 : i64) : i64
  %room = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  llvm.call @mine(%room, %v) : (!llvm.ptr, vector<16xf32>) -> ()
  // Through a pointer: ctx->wait and ctx->wake.
  llvm.call %wait(%p) : !llvm.ptr, (!llvm.ptr) -> ()
  // What --sanitize=thread calls.
  llvm.call @__tsan_read_range(%p, %size) : (!llvm.ptr, i64) -> ()
  llvm.return
}

// -----

//===--- Refused: the step stage ---===//

// expected-error@+1 {{'step.slot' op has no offset; run step-plan-arena}}
step.slot @x size <512>

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op has no kernel; run step-select-microkernel}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

//===--- Refused: memory ---===//

llvm.func internal @f(%n: i64) {
  // expected-error@+1 {{'llvm.alloca' op allocates a size that is not constant}}
  %room = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
  llvm.return
}

// -----

// A loop of these would grow the stack.
llvm.func internal @f() {
  %size = llvm.mlir.constant(64 : i64) : i64
  llvm.br ^next
^next:
  // expected-error@+1 {{'llvm.alloca' op is outside the entry block of its function}}
  %room = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  llvm.br ^next
}

// -----

//===--- Refused: calls ---===//

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func internal @f(%n: i64) {
  // expected-error@+1 {{'llvm.call' op calls unknown function 'malloc'}}
  %p = llvm.call @malloc(%n) : (i64) -> !llvm.ptr
  llvm.return
}

// -----

// The C library's functions are not in the object.
llvm.func @expf(f32) -> f32
llvm.func internal @f(%x: f32) -> f32 {
  // expected-error@+1 {{'llvm.call' op calls unknown function 'expf'}}
  %y = llvm.call @expf(%x) : (f32) -> f32
  llvm.return %y : f32
}

// -----

//===--- Refused: shapes ---===//

spark.weight @w : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{'spark.rms_norm' op has a tensor, a memref or a dynamic shape}}
  %n = spark.rms_norm %x, @w eps 1.0 : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: memref<8xf32>) {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op has a tensor, a memref or a dynamic shape}}
  %p = builtin.unrealized_conversion_cast %x : memref<8xf32> to !llvm.ptr
  return
}

// -----

func.func @f(%p: !llvm.ptr) {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op has a tensor, a memref or a dynamic shape}}
  %x = builtin.unrealized_conversion_cast %p : !llvm.ptr to tensor<?xf32>
  return
}
