// The schedule of a model of two layers, bf16: five phases and five barriers a
// layer, the epilogues on tiles, the slots between phases, and the order of the
// weights' bytes.
//
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline --sparkc-fuse-pipeline --spark-to-step -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=BYTES < %t.mlir
// RUN: FileCheck %s --check-prefix=SLOTS < %t.mlir
// Nothing is left of the graph but weights and config.
// RUN: FileCheck %s --check-prefix=LEFT < %t.mlir
// LEFT-NOT: {{spark\.[a-vx-z]|func\.func|tensor<1x}}
// LEFT:     spark.config
// LEFT-NOT: {{spark\.[a-vx-z]|func\.func|tensor<1x}}

// A line holds two columns of bf16, so that a tile of 8 columns has 256 bytes.
// Behind the norm's 64: a pair of tiles for the two heads of Q, one for K, a
// tile of V and one of gate rows.
// CHECK-LABEL: step.func @layer.sliding {
// CHECK-NEXT:  ^bb0(%[[ROPE:.*]]: !step.vec<32>):
// CHECK-NEXT:    step.phase "q_k_v_proj" linear {
// CHECK-NEXT:      step.stream 0 bytes 1600
// CHECK-NEXT:      %[[X:.*]] = step.view @x : <8>
// CHECK-NEXT:      %[[N:.*]] = step.rms_norm %[[X]] weight 0 eps
// CHECK-NEXT:      step.tiles %[[N]] at 64 layout "tile16_bf16" cols 8 group 0 units 1 paired {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        %[[F:.*]], %[[S:.*]] = step.rotate %[[A]], %[[B]] by %[[ROPE]][%[[J]]] : <32>
// CHECK-NEXT:        step.store %[[F]], @q_k_v_proj.0[%[[J]]] lanes <heads = 2, width = 2, stride = 4>
// CHECK-NEXT:        step.store %[[S]], @q_k_v_proj.0[%[[J]]] lanes <heads = 2, width = 2, stride = 4, base = 2>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:      step.tiles %[[N]] at 576 layout "tile16_bf16" cols 8 group 0 units 1 paired {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        %[[F:.*]], %[[S:.*]] = step.rotate %[[A]], %[[B]] by %[[ROPE]][%[[J]]] : <32>
// CHECK-NEXT:        step.kv_store key %[[F]][%[[J]]] cache <heads = 1, head_dim = 4, positions = 64, element = f16> lanes <heads = 1, width = 2, stride = 4>
// CHECK-NEXT:        step.kv_store key %[[S]][%[[J]]] cache <heads = 1, head_dim = 4, positions = 64, element = f16> lanes <heads = 1, width = 2, stride = 4, base = 2>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:      step.tiles %[[N]] at 1088 layout "tile16_bf16" cols 8 group 0 units 1 {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        step.kv_store value %[[A]][%[[J]]] cache {{.*}} lanes <heads = 1, width = 4, stride = 4>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:      step.tiles %[[N]] at 1344 layout "tile16_bf16" cols 8 group 0 units 1 {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        step.store %[[A]], @q_k_v_proj.1[%[[J]]] lanes <heads = 1, width = 2, stride = 2>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier{{$}}
// CHECK-NEXT:    step.phase "attention" attention {
// CHECK-NEXT:      step.attention @q_k_v_proj.0, @attention cache <heads = 1, head_dim = 4, positions = 64, element = f16> heads 2 window 3 scale 5.000000e-01 chunk 64
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "out_proj" linear {
// CHECK-NEXT:      step.stream 1600 bytes 256
// CHECK-NEXT:      %[[O:.*]] = step.fold @attention heads 2 head_dim 4 window 3 chunk 64 : <8>
// CHECK-NEXT:      %[[G:.*]] = step.view @q_k_v_proj.1 : <2>
// CHECK-NEXT:      %[[H:.*]] = step.head_gate %[[O]], %[[G]]
// CHECK-NEXT:      step.tiles %[[H]] at 1600 layout "tile16_bf16" cols 8 group 0 units 1 {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
// The old residual is read by nothing else: the sum takes its place.
// CHECK-NEXT:        %[[R:.*]] = step.residual %[[A]], @x[%[[J]]] lanes <heads = 1, width = 8, stride = 8>
// CHECK-NEXT:        step.store %[[R]], @x[%[[J]]] lanes <heads = 1, width = 8, stride = 8>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "gate_proj" linear {
// CHECK-NEXT:      step.stream 1856 bytes 576
// CHECK-NEXT:      %[[X:.*]] = step.view @x
// CHECK-NEXT:      %[[N:.*]] = step.rms_norm %[[X]] weight 1856
// CHECK-NEXT:      step.tiles %[[N]] at 1920 layout "tile16_bf16" cols 8 group 0 units 1 paired {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        %[[E:.*]] = step.geglu %[[A]], %[[B]]
// CHECK-NEXT:        step.store %[[E]], @gate_proj.0[%[[J]]] lanes <heads = 1, width = 16, stride = 16>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.phase "down_proj" linear {
// CHECK-NEXT:      step.stream 2432 bytes 512
// CHECK-NEXT:      %[[F:.*]] = step.view @gate_proj.0 : <16>
// CHECK-NEXT:      step.tiles %[[F]] at 2432 layout "tile16_bf16" cols 16 group 0 units 1 {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        %[[R:.*]] = step.residual %[[A]], @x[%[[J]]]
// CHECK-NEXT:        step.store %[[R]], @x[%[[J]]]
// CHECK-NEXT:      } : !step.vec<16>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.return
// CHECK-NEXT:  }

// A full layer is another function. Its rope turns two of four dims: the pairs
// first, then the dims that pass through.
// CHECK-LABEL: step.func @layer.full {
// CHECK-NEXT:  ^bb0(%[[ROPE:.*]]: !step.vec<32>):
// CHECK-NEXT:    step.phase "q_k_v_proj" linear {
// CHECK:           step.tiles {{.*}} at 64 {{.*}} units 1 paired {
// CHECK:             step.store {{.*}}, @q_k_v_proj.0[{{.*}} lanes <heads = 2, width = 1, stride = 4>
// CHECK-NEXT:        step.store {{.*}}, @q_k_v_proj.0[{{.*}} lanes <heads = 2, width = 1, stride = 4, base = 1>
// CHECK:           step.tiles {{.*}} at 576 {{.*}} units 1 paired {
// CHECK:             step.kv_store key {{.*}} positions = 0, element = f16> lanes <heads = 1, width = 1, stride = 4>
// CHECK-NEXT:        step.kv_store key {{.*}} lanes <heads = 1, width = 1, stride = 4, base = 1>
// CHECK:           step.tiles {{.*}} at 1088 {{.*}} units 1 {
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        step.store {{.*}}, @q_k_v_proj.0[{{.*}} lanes <heads = 2, width = 2, stride = 4, base = 2>
// CHECK:           step.tiles {{.*}} at 1344 {{.*}} units 1 {
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        step.kv_store key {{.*}} lanes <heads = 1, width = 2, stride = 4, base = 2>
// CHECK:           step.tiles {{.*}} at 1600 {{.*}} units 1 {
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        step.kv_store value
// CHECK:           step.tiles {{.*}} at 1856 {{.*}} units 1 {
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        step.store {{.*}}, @q_k_v_proj.1
// CHECK-NOT:       step.{{tiles|barrier}}
// CHECK:         step.barrier
// CHECK:           step.attention {{.*}} window 0
// CHECK-COUNT-4: step.barrier
// CHECK-NOT:     step.barrier
// CHECK:         step.return

// The first cache is a ring of 64 positions, 40 bytes each.
// CHECK-LABEL: step.func entry @step {
// CHECK-DAG:     %[[SLIDING:.*]] = step.rope_table <theta = 1.000000e+04, width = 4> : <32>
// CHECK-DAG:     %[[FULL:.*]] = step.rope_table <theta = 5.000000e+06, width = 2> : <32>
// CHECK:         step.phase "embed" other {
// CHECK-NEXT:      step.embed @x weight 6464 layout "tile16_bf16" hidden 8
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.call @layer.sliding(%[[SLIDING]]) layer 0 weights 0 kv <0> : !step.vec<32>
// CHECK-NEXT:    step.call @layer.full(%[[FULL]]) layer 1 weights 2944 kv <2560> : !step.vec<32>
// CHECK-NEXT:    step.phase "head" linear {
// CHECK-NEXT:      step.stream 6400 bytes 576
// CHECK-NEXT:      %[[X:.*]] = step.view @x
// CHECK-NEXT:      %[[N:.*]] = step.rms_norm %[[X]] weight 6400
// CHECK-NEXT:      step.tiles %[[N]] at 6464 layout "tile16_bf16" cols 8 group 0 units 2 {
// CHECK-NEXT:      ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
// CHECK-NEXT:        step.logits %[[A]][%[[J]]] lanes <heads = 1, width = 24, stride = 24>
// CHECK-NEXT:      } : !step.vec<8>
// CHECK-NEXT:    }
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.return

// Bytes lie as the step reads them, without gaps; a tied head's tiles serve as
// the embedding.
// BYTES:      step.pack @pack.layers.0.input_layernorm at 0 layout "vector_f32" cols 8
// BYTES:      step.pack @pack.layers.0.q_k_v_proj at 64 layout "tile16_bf16" cols 8 group 0
// BYTES-SAME:   runs [#step.run<heads = 2, width = 2, stride = 4, weight_b = 0, base_b = 2>, #step.run<heads = 1, width = 2, stride = 4, base_a = 8, weight_b = 0, base_b = 10>, #step.run<heads = 1, width = 4, stride = 4, base_a = 12>, #step.run<heads = 1, width = 2, stride = 2, weight_a = 1>]
// BYTES-SAME:   of [@layers.0.q_k_v_proj, @layers.0.g_proj]
// BYTES:      step.pack @pack.layers.0.out_proj at 1600 layout "tile16_bf16" cols 8 {{.*}} of [@layers.0.out_proj]
// BYTES:      step.pack @pack.layers.0.post_attention_layernorm at 1856 layout "vector_f32" cols 8
// BYTES:      step.pack @pack.layers.0.gate_proj at 1920 layout "tile16_bf16" cols 8
// BYTES-SAME:   runs [#step.run<heads = 1, width = 16, stride = 16, weight_b = 1>] of [@layers.0.gate_proj, @layers.0.up_proj]
// BYTES:      step.pack @pack.layers.0.down_proj at 2432 layout "tile16_bf16" cols 16
// BYTES:      step.pack @pack.layers.1.input_layernorm at 2944
// BYTES:      step.pack @pack.layers.1.q_k_v_proj at 3008
// BYTES-SAME:   runs [#step.run<heads = 2, width = 1, stride = 4, weight_b = 0, base_b = 1>, #step.run<heads = 1, width = 1, stride = 4, base_a = 8, weight_b = 0, base_b = 9>, #step.run<heads = 2, width = 2, stride = 4, base_a = 2>, #step.run<heads = 1, width = 2, stride = 4, base_a = 10>, #step.run<heads = 1, width = 4, stride = 4, base_a = 12>, #step.run<heads = 1, width = 2, stride = 2, weight_a = 1>]
// BYTES:      step.pack @pack.layers.1.out_proj at 5056
// BYTES:      step.pack @pack.layers.1.post_attention_layernorm at 5312
// BYTES:      step.pack @pack.layers.1.gate_proj at 5376
// BYTES:      step.pack @pack.layers.1.down_proj at 5888
// BYTES:      step.pack @pack.norm at 6400
// BYTES:      step.pack @pack.embedding at 6464 layout "tile16_bf16" {{.*}} runs [#step.run<heads = 1, width = 24, stride = 24>] of [@embedding]
// BYTES-NOT:  step.pack
// BYTES:      step.descriptor
// BYTES-SAME:   bytes_per_step = 6976 : i64
// BYTES-SAME:   capacity_multiple = 64 : i64
// BYTES-SAME:   full_layers = 1 : i64
// BYTES-SAME:   kv = #step.affine<2560 + 40 * capacity>
// BYTES-SAME:   kv_type = "f16"
// BYTES-SAME:   linear_weights = 1376 : i64
// BYTES-SAME:   payload = 6976 : i64
// BYTES-SAME:   ring = 64 : i64

// One slot a role, of the layers' largest: records of an attention are 256
// bytes a chunk; a window of 3 can touch two chunks, a full layer has one for
// each 64 positions.
// SLOTS:     step.slot @x size <512>{{$}}
// SLOTS:     step.slot @q_k_v_proj.0 size <512>{{$}}
// SLOTS:     step.slot @q_k_v_proj.1 size <512>{{$}}
// SLOTS:     step.slot @attention size <512 + 4 * capacity>{{$}}
// SLOTS:     step.slot @gate_proj.0 size <512>{{$}}
// SLOTS-NOT: step.slot

// A head of its own leaves the embedding its rows, which lie before what the
// step streams and do not count as streamed: 24 rows of one line.
// RUN: sed 's/spark.linear %%n, @embedding/spark.linear %%n, @lm_head/; s/^  spark.weight @norm/  spark.weight @lm_head : tensor<24x8xbf16> from <"m", BF16, offset = 4096, bytes = 384>\n&/' %S/Inputs/two-layers.mlir \
// RUN:   | sparkc-opt --sparkc-graph-pipeline=scheme=f32 --sparkc-fuse-pipeline --spark-to-step | FileCheck %s --check-prefix=UNTIED
// UNTIED:      step.func entry @step
// UNTIED:        step.embed @x weight 0 layout "rows_f32" hidden 8
// UNTIED:        step.call @layer.sliding({{.*}}) layer 0 weights 1536 kv
// UNTIED:        step.phase "head" linear {
// UNTIED:          step.tiles {{.*}} layout "tile16_f32" cols 8 group 0 units 2 {
// UNTIED:      step.pack @rows.embedding at 0 layout "rows_f32" cols 8 group 0 runs [#step.run<heads = 1, width = 24, stride = {{[0-9]+}}>] of [@embedding]
// UNTIED:      step.pack @pack.layers.0.input_layernorm at 1536
// UNTIED:      step.pack @pack.lm_head at [[#HEAD:]] layout "tile16_f32" {{.*}} of [@lm_head]
// UNTIED:      bytes_per_step = [[#HEAD+1024-1536]] : i64
// UNTIED-SAME: payload = [[#HEAD+1024]] : i64
