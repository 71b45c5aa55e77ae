// A parameter that has its default is not printed.
//
// RUN: sparkc-opt %s | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --emit-bytecode | sparkc-opt | FileCheck %s

// CHECK-LABEL: @affine
// CHECK-SAME:    a = #step.affine<0>
// CHECK-SAME:    b = #step.affine<1024 + 12 * capacity>
// CHECK-SAME:    c = #step.affine<7>
func.func private @affine() attributes {
  a = #step.affine<0>,
  b = #step.affine<1024 + 12 * capacity>,
  c = #step.affine<7 + 0 * capacity>
}

// CHECK-LABEL: @lanes
// CHECK-SAME:    a = #step.lanes<heads = 8, width = 128, stride = 256, base = 128>
// CHECK-SAME:    b = #step.lanes<heads = 1, width = 3, stride = 0>
func.func private @lanes() attributes {
  a = #step.lanes<heads = 8, width = 128, stride = 256, base = 128>,
  b = #step.lanes<heads = 1, width = 3, stride = 0, base = 0>
}

// CHECK-LABEL: @run
// CHECK-SAME:    a = #step.run<heads = 1, width = 40, stride = 40>
// CHECK-SAME:    b = #step.run<heads = 8, width = 128, stride = 256, weight_b = 0, base_b = 128>
// CHECK-SAME:    c = #step.run<heads = 1, width = 40, stride = 40, weight_a = 2, base_a = 16, weight_b = 3, base_b = 24>
func.func private @run() attributes {
  a = #step.run<heads = 1, width = 40, stride = 40, weight_b = -1>,
  b = #step.run<heads = 8, width = 128, stride = 256, weight_b = 0, base_b = 128>,
  c = #step.run<base_b = 24, weight_b = 3, base_a = 16, weight_a = 2,
                stride = 40, width = 40, heads = 1>
}

// CHECK-LABEL: @cache
// CHECK-SAME:    a = #step.cache<heads = 2, head_dim = 256, positions = 512, element = f16>
// CHECK-SAME:    b = #step.cache<heads = 1, head_dim = 6, positions = 0, element = f32>
func.func private @cache() attributes {
  a = #step.cache<heads = 2, head_dim = 256, positions = 512, element = f16>,
  b = #step.cache<heads = 1, head_dim = 6, positions = 0, element = f32>
}
