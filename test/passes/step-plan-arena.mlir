// step-plan-arena: slots get constant offsets, multiples of 64, one behind the
// other; the one that grows with the context goes last, wherever it stands.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics --step-plan-arena | FileCheck %s

// CHECK-LABEL: module @growing
module @growing {
  // CHECK: step.slot @x size <512> at 0
  step.slot @x size <512>
  // 100 bytes take two lines.
  // CHECK: step.slot @odd size <100> at 512
  step.slot @odd size <100>
  // CHECK: step.slot @partials size <70 + 12 * capacity> at 704
  step.slot @partials size <70 + 12 * capacity>
  // CHECK: step.slot @line size <64> at 640
  step.slot @line size <64>
  // CHECK: step.descriptor {arena = #step.affine<832 + 12 * capacity>
  step.descriptor {kv = #step.affine<0>, payload = 0 : i64,
    bytes_per_step = 0 : i64, linear_weights = 0 : i64, full_layers = 0 : i64,
    ring = 0 : i64, capacity_multiple = 16 : i64, barriers = 0 : i64,
    kv_type = "f16"}
}

// -----

// What an earlier plan said does not matter.
// CHECK-LABEL: module @again
module @again {
  // CHECK: step.slot @a size <128> at 0
  step.slot @a size <128> at 4096
  // CHECK: step.slot @b size <64> at 128
  step.slot @b size <64> at 0
  // CHECK: step.descriptor {arena = #step.affine<192>,
  step.descriptor {arena = #step.affine<9 + 9 * capacity>, kv = #step.affine<0>,
    payload = 0 : i64, bytes_per_step = 0 : i64, linear_weights = 0 : i64,
    full_layers = 0 : i64, ring = 0 : i64, capacity_multiple = 16 : i64,
    barriers = 0 : i64, kv_type = "f16"}
}

// -----

// Behind one that grows no offset is a constant.
// expected-note@+1 {{the other one}}
step.slot @a size <0 + 4 * capacity>
// expected-error@+1 {{only one slot may grow with the context}}
step.slot @b size <0 + 8 * capacity>
