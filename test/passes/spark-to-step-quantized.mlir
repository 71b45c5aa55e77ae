// One layer of the 1.7B shapes, quantized: what is fused, five barriers, and
// the order of the weights' bytes.
//
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4 rules=lm_head=q6" --sparkc-fuse-pipeline -o %t.fused.mlir
// RUN: FileCheck %s --check-prefix=FUSED < %t.fused.mlir
// RUN: sparkc-opt %t.fused.mlir --sparkc-schedule-pipeline -o %t.step.mlir
// RUN: FileCheck %s < %t.step.mlir
// RUN: FileCheck %s --check-prefix=BYTES < %t.step.mlir
// Each linear quantizes its input once, the head too.
// RUN: grep -c "step.quantize" %t.step.mlir | FileCheck %s --check-prefix=FIVE
// FIVE: {{^5$}}

// FUSED-LABEL: spark.layer 0
// FUSED:      spark.fused_linear{{.*}} prologue {
// FUSED:        spark.rms_norm
// FUSED:      } segments [@layers.0.q_k_v_proj, @layers.0.g_proj] epilogue {
// FUSED:        spark.rope
// FUSED:        spark.rope
// FUSED:        spark.kv_write
// FUSED:      spark.attention
// FUSED-NEXT: spark.fused_linear{{.*}} prologue {
// FUSED:        spark.head_gate
// FUSED:      } segments [@layers.0.out_proj] epilogue {
// FUSED:        spark.add
// FUSED:      spark.fused_linear{{.*}} prologue {
// FUSED:        spark.rms_norm
// FUSED:      } segments [@layers.0.gate_proj, @layers.0.up_proj] epilogue {
// FUSED:        spark.geglu
// FUSED:      spark.fused_linear{{.*}} prologue {
// FUSED:      } segments [@layers.0.down_proj] epilogue {
// FUSED:        spark.add
// FUSED-NOT:  spark.{{linear|rms_norm|rope|head_gate|geglu|add|kv_write}}
// FUSED:      } : tensor<1x2048xf32>

// A tile of K columns is K/64 groups of 8 lines and a head of 192 bytes for
// each four groups: 17920 bytes for 2048 columns, 58240 for 6656.
// CHECK-LABEL: step.func @layer.sliding
// CHECK-NEXT:  ^bb0(%[[ROPE:.*]]: !step.vec<256>):
// CHECK-NEXT:    step.phase "q_k_v_proj" linear {
// CHECK-NEXT:      step.stream 0 bytes 3466752
// CHECK-NEXT:      %[[X:.*]] = step.view @x
// CHECK-NEXT:      %[[N:.*]] = step.rms_norm %[[X]] weight 0
// CHECK-NEXT:      %[[XQ:.*]] = step.quantize %[[N]] : <2048> -> <2048, 64>
// Q and K as pairs that rotate, then V and the gate rows.
// CHECK-NEXT:      step.tiles %[[XQ]] at 8192 layout "tile16_q4" cols 2048 group 64 units 64 paired {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        step.rotate %[[A]], %[[B]] by %[[ROPE]][%[[J]]]
// CHECK-NEXT:        step.store %first, @q_k_v_proj.0
// CHECK-NEXT:        step.store %second, @q_k_v_proj.0
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:      step.tiles %[[XQ]] at 2301952 layout "tile16_q4" cols 2048 group 64 units 16 paired {
// CHECK:             step.rotate
// CHECK-NEXT:        step.kv_store key %first
// CHECK-NEXT:        step.kv_store key %second
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:      step.tiles %[[XQ]] at 2875392 layout "tile16_q4" cols 2048 group 64 units 32 {
// CHECK:             step.kv_store value
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:      step.tiles %[[XQ]] at 3448832 layout "tile16_q4" cols 2048 group 64 units 1 {
// CHECK:             step.store {{.*}}, @q_k_v_proj.1
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "attention" attention {
// CHECK-NEXT:      step.attention @q_k_v_proj.0
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "out_proj" linear {
// CHECK-NEXT:      step.stream 3466752 bytes 2293760
// CHECK-NEXT:      %[[O:.*]] = step.fold @attention
// CHECK-NEXT:      %[[G:.*]] = step.view @q_k_v_proj.1
// CHECK-NEXT:      %[[OG:.*]] = step.head_gate %[[O]], %[[G]]
// CHECK-NEXT:      %[[OQ:.*]] = step.quantize %[[OG]] : <2048> -> <2048, 64>
// CHECK-NEXT:      step.tiles %[[OQ]] at 3466752 layout "tile16_q4" cols 2048 group 64 units 128 {
// CHECK:             step.residual {{.*}}, @x
// CHECK-NEXT:        step.store {{.*}}, @x
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "gate_proj" linear {
// CHECK-NEXT:      step.stream 5760512 bytes 14917632
// CHECK-NEXT:      %[[X2:.*]] = step.view @x
// CHECK-NEXT:      %[[N2:.*]] = step.rms_norm %[[X2]] weight 5760512
// CHECK-NEXT:      %[[XQ2:.*]] = step.quantize %[[N2]] : <2048> -> <2048, 64>
// CHECK-NEXT:      step.tiles %[[XQ2]] at 5768704 layout "tile16_q4" cols 2048 group 64 units 416 paired {
// CHECK:             step.geglu
// CHECK-NEXT:        step.store {{.*}}, @gate_proj.0
// CHECK-NEXT:      } : !step.qvec<2048, 64>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "down_proj" linear {
// CHECK-NEXT:      step.stream 20678144 bytes 7454720
// CHECK-NEXT:      %[[F:.*]] = step.view @gate_proj.0
// CHECK-NEXT:      %[[FQ:.*]] = step.quantize %[[F]] : <6656> -> <6656, 64>
// CHECK-NEXT:      step.tiles %[[FQ]] at 20678144 layout "tile16_q4" cols 6656 group 64 units 128 {
// CHECK:             step.residual {{.*}}, @x
// CHECK-NEXT:        step.store {{.*}}, @x
// CHECK-NEXT:      } : !step.qvec<6656, 64>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.return

// The payload: the embedding's rows, then what the step reads, as it reads it.
// BYTES: step.call @layer.sliding({{.*}}) layer 0 weights 536870912
// BYTES: step.pack @rows.embedding at 0 layout "rows_bf16"
// BYTES: step.pack @pack.layers.0.input_layernorm at 536870912 layout "vector_f32"
// BYTES: step.pack @pack.layers.0.q_k_v_proj at 536879104 layout "tile16_q4" cols 2048 group 64
// BYTES-SAME: runs [#step.run<heads = 8, width = 128, stride = 256, weight_b = 0, base_b = 128>, #step.run<heads = 2, width = 128, stride = 256, base_a = 2048, weight_b = 0, base_b = 2176>, #step.run<heads = 2, width = 256, stride = 256, base_a = 2560>, #step.run<heads = 1, width = 8, stride = 8, weight_a = 1>] of [@layers.0.q_k_v_proj, @layers.0.g_proj]
// BYTES: step.pack @pack.layers.0.out_proj at 540337664 layout "tile16_q4" cols 2048 group 64
// BYTES: step.pack @pack.layers.0.post_attention_layernorm at 542631424
// BYTES: step.pack @pack.layers.0.gate_proj at 542639616 layout "tile16_q4" cols 2048 group 64 runs [#step.run<heads = 1, width = 6656, stride = 6656, weight_b = 1>] of [@layers.0.gate_proj, @layers.0.up_proj]
// BYTES: step.pack @pack.layers.0.down_proj at 557549056 layout "tile16_q4" cols 6656 group 64
// BYTES: step.pack @pack.norm at 565003776
// BYTES: step.pack @pack.lm_head at 565011968 layout "tile16_q6" cols 2048 group 64
// BYTES: bytes_per_step = 242050560 : i64
// BYTES-SAME: linear_weights = 319832064 : i64

// Rows of one fused linear on two grids: a pack each, one activation in the
// smaller groups.
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4:g128 rules=*.g_proj=q8:g32" --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s --check-prefix=MIXED
// MIXED:     step.phase "q_k_v_proj" linear {
// MIXED:       %[[XQ:.*]] = step.quantize %{{.*}} : <2048> -> <2048, 32>
// MIXED:       step.tiles %[[XQ]] at 8192 layout "tile16_q4" cols 2048 group 128 units 64 paired
// MIXED:       step.tiles %[[XQ]] {{.*}} layout "tile16_q4" cols 2048 group 128 units 32
// MIXED:       step.tiles %[[XQ]] {{.*}} layout "tile16_q8" cols 2048 group 32 units 1 {
// MIXED-NOT:   step.quantize
// MIXED:     step.barrier
// MIXED:     step.quantize %{{.*}} : <2048> -> <2048, 128>
// MIXED:     step.pack @pack.layers.0.q_k_v_proj at {{.*}} layout "tile16_q4" cols 2048 group 128 {{.*}} of [@layers.0.q_k_v_proj]
// MIXED:     step.pack @pack.layers.0.q_k_v_proj.1 at {{.*}} layout "tile16_q8" cols 2048 group 32 {{.*}} of [@layers.0.g_proj]

// Grids that differ in the zero points alone: one stores none.
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4 rules=*.g_proj=q4:sym" --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s --check-prefix=SYM
// SYM: step.pack @pack.layers.0.q_k_v_proj at {{.*}} layout "tile16_q4" cols 2048 group 64 {{.*}} of [@layers.0.q_k_v_proj]
// SYM: step.pack @pack.layers.0.q_k_v_proj.1 at {{.*}} layout "tile16_q4s" cols 2048 group 64 {{.*}} of [@layers.0.g_proj]

// Floats beside a grid take the activation as it is.
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4 rules=*.g_proj=bf16" --sparkc-fuse-pipeline --sparkc-schedule-pipeline | FileCheck %s --check-prefix=FLOAT
// FLOAT:     %[[N:.*]] = step.rms_norm
// FLOAT:     %[[XQ:.*]] = step.quantize %[[N]]
// FLOAT:     step.tiles %[[XQ]] {{.*}} layout "tile16_q4"
// FLOAT:     step.tiles %[[N]] at {{.*}} layout "tile16_bf16" cols 2048 group 0 units 1 {
