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
llvm.mlir.global internal constant @table(1.0 : f64) : f64
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
  // Instructions on every machine that code is made for.
  %fma = llvm.intr.fma(%v, %v, %v) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
  %root = llvm.intr.sqrt(%fma) : (vector<16xf32>) -> vector<16xf32>
  llvm.call_intrinsic "llvm.x86.sse2.pause"() : () -> ()
  // Its own functions and constants.
  %own = llvm.mlir.addressof @mine : !llvm.ptr
  %table = llvm.mlir.addressof @table : !llvm.ptr
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

//===--- Refused: layouts that an op cannot read ---===//

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op has an unknown layout 'tile16_q3'}}
    step.tiles %x at 0 layout "tile16_q3" cols 128 group 0 units 1
      kernel "dot_q3" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op layout 'tile16_q4' has groups of 32, 64 or 128, not 0}}
    step.tiles %x at 0 layout "tile16_q4" cols 128 group 0 units 1
      kernel "dot_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op layout 'rows_f32' has no tiles}}
    step.tiles %x at 0 layout "rows_f32" cols 128 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    // expected-error@+1 {{'step.tiles' op has groups of 64, but layout 'tile16_bf16' has none}}
    step.tiles %q at 0 layout "tile16_bf16" cols 128 group 64 units 1
      kernel "dot_bf16" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    // expected-error@+1 {{'step.tiles' op layout 'tile16_q4' has groups of 32, 64 or 128, not 192}}
    step.tiles %q at 0 layout "tile16_q4" cols 128 group 192 units 1
      kernel "dot_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op has an unknown layout 'rows_f8'}}
    step.embed @x weight 0 layout "rows_f8" hidden 8
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op layout 'tile16_q6' has groups of 32, 64 or 128, not 0}}
    step.embed @x weight 0 layout "tile16_q6" hidden 8
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op reads rows, which layout 'vector_f32' does not have}}
    step.embed @x weight 0 layout "vector_f32" hidden 8
  }
  step.return
}

// -----

// expected-error@+1 {{'step.pack' op has an unknown layout 'columns'}}
step.pack @p at 0 layout "columns" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]

// -----

// expected-error@+1 {{'step.pack' op layout 'tile16_q8' has groups of 32, 64 or 128, not 16}}
step.pack @p at 0 layout "tile16_q8" cols 128 group 16
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]

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
  // expected-error@+1 {{'llvm.alloca' op is outside the entry block of a function}}
  %room = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  llvm.br ^next
}

// -----

func.func @f() -> !llvm.ptr {
  %size = llvm.mlir.constant(64 : i64) : i64
  // expected-error@+1 {{'llvm.alloca' op is outside the entry block of a function}}
  %room = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  return %room : !llvm.ptr
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

// Nor may somebody else get their addresses.
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func internal @f() -> !llvm.ptr {
  // expected-error@+1 {{'llvm.mlir.addressof' op refers to unknown symbol 'malloc'}}
  %p = llvm.mlir.addressof @malloc : !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// -----

llvm.mlir.global external @environ() : !llvm.ptr
llvm.func internal @f() -> !llvm.ptr {
  // expected-error@+1 {{'llvm.mlir.addressof' op refers to unknown symbol 'environ'}}
  %p = llvm.mlir.addressof @environ : !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// -----

func.func private @exit(i32)
func.func @f(%x: i32) {
  // expected-error@+1 {{'func.call' op calls unknown function 'exit'}}
  func.call @exit(%x) : (i32) -> ()
  return
}

// -----

func.func private @exit(i32)
func.func @f() -> ((i32) -> ()) {
  // expected-error@+1 {{'func.constant' op refers to unknown symbol 'exit'}}
  %e = func.constant @exit : (i32) -> ()
  return %e : (i32) -> ()
}

// -----

llvm.func internal @f() {
  // expected-error@+1 {{'llvm.inline_asm' op is code that nothing can check}}
  llvm.inline_asm "syscall", "" : () -> ()
  llvm.return
}

// -----

llvm.func internal @f(%x: vector<16xf32>) -> vector<16xf32> {
  // expected-error@+1 {{'llvm.intr.exp' op may become a call of a library}}
  %y = llvm.intr.exp(%x) : (vector<16xf32>) -> vector<16xf32>
  llvm.return %y : vector<16xf32>
}

// -----

llvm.func internal @f(%x: f64) -> f64 {
  // expected-error@+1 {{'llvm.intr.sin' op may become a call of a library}}
  %y = llvm.intr.sin(%x) : (f64) -> f64
  llvm.return %y : f64
}

// -----

llvm.func internal @f(%x: f32) -> f32 {
  // expected-error@+1 {{'llvm.intr.pow' op may become a call of a library}}
  %y = llvm.intr.pow(%x, %x) : (f32, f32) -> f32
  llvm.return %y : f32
}

// -----

llvm.func internal @f(%p: !llvm.ptr, %n: i64) {
  // expected-error@+1 {{'llvm.intr.memcpy' op may become a call of a library}}
  "llvm.intr.memcpy"(%p, %p, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
}

// -----

llvm.func internal @f(%x: f32) -> f32 {
  // expected-error@+1 {{'llvm.frem' op may become a call of a library}}
  %y = llvm.frem %x, %x : f32
  llvm.return %y : f32
}

// -----

llvm.func internal @f(%x: f32) -> f32 {
  // expected-error@+1 {{'llvm.call_intrinsic' op may become a call of a library}}
  %y = llvm.call_intrinsic "llvm.log.f32"(%x) : (f32) -> f32
  llvm.return %y : f32
}

// -----

// A math op that the conversions have left.
llvm.func internal @f(%x: f32) -> f32 {
  // expected-error@+1 {{'math.erf' op may become a call of a library}}
  %y = math.erf %x : f32
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
