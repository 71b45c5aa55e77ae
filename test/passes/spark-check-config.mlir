// The model as it is, and as it is after the fusions, passes; then one fault at
// a time is edited into it.
//
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-check-config | FileCheck %s
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-fuse-pipeline --spark-check-config -o /dev/null
// CHECK: spark.layer 1

// DEFINE: %{what} = unset
// DEFINE: %{edit} = unset
// DEFINE: %{run} = sed -E -e '%{edit}' %S/Inputs/two-layers.mlir > %t.mlir && not sparkc-opt %t.mlir --spark-check-config 2>&1 | FileCheck %s --check-prefix=%{what}

// REDEFINE: %{what} = NO-CONFIG
// REDEFINE: %{edit} = /spark.config/,/scheme/d
// RUN: %{run}
// NO-CONFIG: error: expects a spark.config

// REDEFINE: %{what} = STEP-NAME
// REDEFINE: %{edit} = s/@step/@stop/
// RUN: %{run}
// STEP-NAME: error: expects a function @step with a body

// REDEFINE: %{what} = VOCAB
// REDEFINE: %{edit} = s/vocab = 24/vocab = 25/
// RUN: %{run}
// VOCAB: error: 'func.func' op expects type '(tensor<1xi32>, index) -> tensor<1x25xf32>', not '(tensor<1xi32>, index) -> tensor<1x24xf32>'

// REDEFINE: %{what} = INDEX
// REDEFINE: %{edit} = s/spark.layer 1/spark.layer 2/
// RUN: %{run}
// INDEX: error: 'spark.layer' op expects its index to be 1, not 2

// REDEFINE: %{what} = COUNT
// REDEFINE: %{edit} = s/layers = 2/layers = 3/
// RUN: %{run}
// COUNT: error: 'func.func' op expects the number of layers to be 3, not 2

// REDEFINE: %{what} = CHAIN
// REDEFINE: %{edit} = s/spark.layer 1 \(%x1\)/spark.layer 1 (%x0)/
// RUN: %{run}
// CHAIN: error: 'spark.layer' op must take the result of the layer before it

// REDEFINE: %{what} = FIRST
// REDEFINE: %{edit} = s/^.*spark.layer 0 \(%x0\)/    %z = spark.add %x0, %x0 : tensor<1x8xf32>\n    %x1 = spark.layer 0 (%z)/
// RUN: %{run}
// FIRST: error: 'spark.layer' op must take the embedding

// REDEFINE: %{what} = HIDDEN
// REDEFINE: %{edit} = s/hidden = 8/hidden = 16/
// RUN: %{run}
// HIDDEN: error: 'spark.layer' op expects its features (hidden) to be 16, not 8

// REDEFINE: %{what} = INTERMEDIATE
// REDEFINE: %{edit} = s/intermediate = 16/intermediate = 32/
// RUN: %{run}
// INTERMEDIATE: error: 'spark.geglu' op expects its features (intermediate) to be 32, not 16

// REDEFINE: %{what} = NO-WRITE
// REDEFINE: %{edit} = /kv_write .*@kv.1/d
// RUN: %{run}
// NO-WRITE: error: 'spark.layer' op expects one spark.kv_write and one spark.attention, not 0 and 1

// REDEFINE: %{what} = WRONG-CACHE
// REDEFINE: %{edit} = s/attention %qr, @kv.1/attention %qr, @kv.2/; s/^  spark.kv_cache @kv.1 .*/&\n  spark.kv_cache @kv.2 heads 1 head_dim 4 ring 0 : f16/
// RUN: %{run}
// WRONG-CACHE: error: 'spark.attention' op reads @kv.2 but its layer writes @kv.1

// REDEFINE: %{what} = SHARED-CACHE
// REDEFINE: %{edit} = s/@kv.1 at/@kv.0 at/; s/window 0 scale/window 3 scale/
// RUN: %{run}
// SHARED-CACHE: error: 'spark.attention' op shares @kv.0 with another layer
// SHARED-CACHE: note: the other layer is here

// REDEFINE: %{what} = WINDOW
// REDEFINE: %{edit} = s/window 3/window 4/
// RUN: %{run}
// WINDOW: error: 'spark.attention' op expects its window (the config's or 0) to be 3, not 4

// REDEFINE: %{what} = SCALE
// REDEFINE: %{edit} = s/scale 0.5/scale 0.25/
// RUN: %{run}
// SCALE: error: 'spark.attention' op expects a scale of 1/sqrt(head_dim), 5.000000e-01 : f32, not 2.500000e-01 : f32

// REDEFINE: %{what} = CHUNK
// REDEFINE: %{edit} = /layer 1/,$s/chunk 64/chunk 32/
// RUN: %{run}
// CHUNK: error: 'spark.attention' op has chunk 32 : i64, but an earlier op 64 : i64
// CHUNK: note: the earlier op is here

// REDEFINE: %{what} = HEADS
// REDEFINE: %{edit} = s/ heads = 2/ heads = 4/
// RUN: %{run}
// HEADS: error: 'spark.attention' op expects heads to be 4, not 2

// REDEFINE: %{what} = KV-HEADS
// REDEFINE: %{edit} = s/kv_heads = 1/kv_heads = 2/
// RUN: %{run}
// KV-HEADS: error: 'spark.kv_cache' op expects heads (kv_heads) to be 2, not 1

// REDEFINE: %{what} = RING
// REDEFINE: %{edit} = s/prefill_block = 1 /prefill_block = 63 /
// RUN: %{run}
// RING: error: 'spark.kv_cache' op expects a ring of at least window + prefill_block - 1 positions in whole chunks, 128, not 64

// A quantized cache is written while it is read: 128 positions will do, 64 not.
// RUN: sed -e 's/ring 64 : f16/ring 128 : i8/; s/ring 0 : f16/ring 0 : i8/' %S/Inputs/two-layers.mlir | sparkc-opt --spark-check-config -o /dev/null
// REDEFINE: %{what} = RING-I8
// REDEFINE: %{edit} = s/(ring .*) : f16/\1 : i8/
// RUN: %{run}
// RING-I8: error: 'spark.kv_cache' op expects a ring of at least window + prefill_block - 1 positions in whole chunks, and a chunk at least in the block's place, 128, not 64

// REDEFINE: %{what} = KV-TYPE
// REDEFINE: %{edit} = s/ring 0 : f16/ring 0 : f32/
// RUN: %{run}
// KV-TYPE: error: 'spark.kv_cache' op has elements of type 'f32', but an earlier op 'f16'

// REDEFINE: %{what} = ROPE
// REDEFINE: %{edit} = /layer 1/,$s/heads 1 rope <theta = 5.0e.06, width = 2>/heads 1 rope <theta = 5.0e+06, width = 4>/
// RUN: %{run}
// ROPE: error: 'spark.rope' op has rope #spark.rope<theta = 5.000000e+06, width = 4>, but an earlier op #spark.rope<theta = 5.000000e+06, width = 2>

// REDEFINE: %{what} = EPS
// REDEFINE: %{edit} = s/@norm eps 1.0e-06/@norm eps 1.0e-05/
// RUN: %{run}
// EPS: error: 'spark.rms_norm' op has eps {{.*}}, but an earlier op

// REDEFINE: %{what} = POSITION
// REDEFINE: %{edit} = s/pos: index\) -> .*/&\n    %zero = arith.constant 0 : index/; s/spark.attention .qr, @kv.1 at .pos/spark.attention %qr, @kv.1 at %zero/
// RUN: %{run}
// POSITION: error: 'spark.attention' op must be at the step's position

// REDEFINE: %{what} = ROPE-POSITION
// REDEFINE: %{edit} = s/pos: index\) -> .*/&\n    %zero = arith.constant 0 : index/; s/spark.rope %q at .pos/spark.rope %q at %zero/
// RUN: %{run}
// ROPE-POSITION: error: 'spark.rope' op must be at the step's position

// REDEFINE: %{what} = UNUSED-WEIGHT
// REDEFINE: %{edit} = s/^  spark.weight @norm .*/  spark.weight @extra : tensor<1xbf16> from <"m", BF16, offset = 0, bytes = 2>\n&/
// RUN: %{run}
// UNUSED-WEIGHT: error: 'spark.weight' op @extra is not used by @step

// REDEFINE: %{what} = UNUSED-CACHE
// REDEFINE: %{edit} = s/^  spark.kv_cache @kv.1 .*/&\n  spark.kv_cache @kv.2 heads 1 head_dim 4 ring 0 : f16/
// RUN: %{run}
// UNUSED-CACHE: error: 'spark.kv_cache' op @kv.2 is not used by @step

// REDEFINE: %{what} = TWO-CONFIGS
// REDEFINE: %{edit} = s/^  spark.config/  spark.config {vocab = 1 : i64, hidden = 1 : i64, intermediate = 1 : i64, layers = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 1 : i64, window = 1 : i64, max_context = 1 : i64, context = 1 : i64, prefill_block = 1 : i64, scheme = ""}\n&/
// RUN: %{run}
// TWO-CONFIGS: error: 'spark.config' op is the second one
// TWO-CONFIGS: note: the first one is here
