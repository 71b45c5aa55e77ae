// step-verify-static, and step-lower-to-llvm before it makes code: what edited
// text of a schedule reads and writes lies where something is.
//
// RUN: sparkc-opt %S/Inputs/layer-1.7b.mlir --sparkc-graph-pipeline="scheme=q4 rules=lm_head=q6" --sparkc-fuse-pipeline --sparkc-schedule-pipeline --step-select-microkernel -o %t.step.mlir
// RUN: sparkc-opt %t.step.mlir --step-verify-static -o /dev/null
// RUN: sed 's/prefill_block = 1/prefill_block = 6/' %S/Inputs/two-layers.mlir | sparkc-opt --sparkc-graph-pipeline --sparkc-fuse-pipeline --sparkc-schedule-pipeline --step-select-microkernel -o %t.two.mlir
// RUN: sparkc-opt %t.two.mlir --step-verify-static -o /dev/null

//===--- Weights ---===//

// Into a tile, behind the matrix's last tile, into another matrix, before and
// behind all of them.
// RUN: sed 's/tiles \(.*\) at 8192/tiles \1 at 8256/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=INSIDE
// INSIDE: error: 'step.tiles' op reads at byte 536879168 of the payload, where '@pack.layers.0.q_k_v_proj' at 536879104 holds layout 'tile16_q4' cols 2048 group 64: inside a tile of 17920 bytes
// INSIDE: note: called for weights at 536870912
// RUN: sed '/pack @pack.layers.0.gate_proj /s/width = 6656/width = 6640/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=PAIRS
// PAIRS: 'step.tiles' op reads at byte 542639616 {{.*}}: 830 tiles, not 416 pairs
// RUN: sed '/pack @pack.lm_head /s/width = 131072/width = 131056/; /stream 565003776/d' %t.step.mlir | not sparkc-opt --step-lower-to-llvm 2>&1 | FileCheck %s --check-prefix=TILES
// TILES: 'step.tiles' op reads at byte 565011968 {{.*}} '@pack.lm_head' at 565011968 {{.*}}: 8191 tiles, not 8192
// RUN: sed 's/tiles \(.*\) at 3466752/tiles \1 at 5768704/' %t.step.mlir | sparkc-opt --step-verify-static -o /dev/null
// RUN: sed 's/tiles \(.*\) at 3466752/tiles \1 at 20678144/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: 'step.tiles' op reads at byte 557549056 {{.*}} '@pack.layers.0.down_proj' at 557549056 holds layout 'tile16_q4' cols 6656 group 64: not its tiles
// RUN: sed 's/layer 0 weights 536870912/layer 0 weights 1073741824/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: 'step.stream' op streams to byte 1077208576 of a payload of 778921472
// NOTHING: note: called for weights at 1073741824 and a cache at 0 bytes
// A layer's weights are its caller's business: each call is looked at.
// RUN: sed 's/layer 1 weights [0-9]*/layer 1 weights 64/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: error: 'step.rms_norm' op reads at byte 64 {{.*}}: no vector of 8
// CALL: note: called for weights at 64
// Another layout, kernel and all, and another group.
// RUN: sed 's/"tile16_q6" \(.*\) "dot_q6_avx2"/"tile16_q4" \1 "dot_q4_avx2"/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: 'step.tiles' op {{.*}} holds layout 'tile16_q6' cols 2048 group 64: not its tiles
// RUN: sed '/ at 8192 /s/group 64/group 128/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: 'step.tiles' op {{.*}} group 64: not its tiles
// RUN: sed 's/embed @x weight 0 /embed @x weight 64 /' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=EMBED
// EMBED: 'step.embed' op reads at byte 64 {{.*}}: not its rows
// RUN: sed '/pack @rows.embedding /s/width = 131072/width = 131071/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: 'step.embed' op reads at byte 0 {{.*}}: 131071 rows, not a vocabulary of 131072
// RUN: sed 's/stream 0 bytes 3466752/stream 0 bytes 346675200/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=STREAM
// STREAM: 'step.stream' op streams to byte 883546112 of a payload of 778921472
// RUN: sed 's/pack @pack.norm at 565003776/pack @pack.norm at 565000000/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: 'step.pack' op begins at 565000000, before '@pack.layers.0.down_proj' ends
// OVERLAP: note: it ends at 565003776
// RUN: sed 's/payload = 778[0-9]*/payload = 778/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=PAYLOAD
// PAYLOAD: 'step.pack' op ends at 778921472, behind the payload of 778 bytes

//===--- The arena ---===//

// RUN: sed 's/slot @gate_proj.0 size <26624>/slot @gate_proj.0 size <26112>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: 'step.{{store|view}}' op needs 26624 bytes of '@gate_proj.0', which has 26112
// RUN: sed 's/ @gate_proj.0\[\(.*\)stride = 6656>/ @gate_proj.0[\1stride = 6656, base = 16>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=LANES
// LANES: 'step.store' op needs 26688 bytes of '@gate_proj.0', which has 26624
// RUN: sed 's/slot @attention size <78336>/slot @attention size <78335>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=RECORDS
// RECORDS: 'step.{{attention|fold}}' op needs 78336 bytes of '@attention', which has 78335 bytes
// RUN: sed 's/slot @x size <8192> at 0/slot @x size <8192> at 1048576/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=ARENA
// ARENA: 'step.slot' op ends at 1056768 bytes of an arena of 121856 bytes
// Every tile has its lanes, of each sink.
// RUN: sed 's/units 416 paired/units 417 paired/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=STORED
// STORED: 'step.store' op has lanes for 416 tiles, not for 417
// RUN: sed 's/units 8192/units 8193/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=LAST
// LAST: 'step.logits' op has lanes for 8192 tiles, not for 8193
// RUN: sed 's/kv_store value \(.*\)heads = 2, width = 256, stride = 256>/kv_store value \1heads = 1, width = 16, stride = 16, base = 496>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=VALUES
// VALUES: 'step.kv_store' op has lanes for 1 tiles, not for 32
// Sums that 32 bits do not hold; places that no memory has.
// RUN: sed 's/ @gate_proj.0\[\(.*\)heads = 1, width = 6656, stride = 6656>/ @gate_proj.0[\1heads = 6656, width = 1, stride = 2147483648>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: 'step.store' op needs 57166014709764 bytes of '@gate_proj.0', which has 26624
// RUN: sed 's/slot @gate_proj.0 size <26624>/slot @gate_proj.0 size <9223372036854775807>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: more bytes than there are: 9223372036854775807 + 0 * capacity
// RUN: sed 's/window 512 chunk 64/window 9223372036854775807 chunk 64/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: a window of 9223372036854775807 in chunks of 64 is too large
// A chunk that no capacity is made of.
// RUN: sed 's/capacity_multiple = 64/capacity_multiple = 48/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=CHUNK
// CHUNK: op its chunk of 64 does not divide capacities, multiples of 48
// A row for each token of a block; a block's activations have none.
// RUN: sed 's/slot @block.activations size <\([0-9]*\)>/slot @block.activations size <\1> row 64/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=ROWLESS
// ROWLESS: op needs all tokens of a block in one, but '@block.activations' has a row for each
// RUN: sed 's/\(slot @x size\) <[0-9]*> row/\1 <1024> row/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=BLOCK
// BLOCK: 'step.slot' op has {{[0-9]+}} rows of {{[0-9]+}} in 1024 bytes
// RUN: sed 's/\(slot @x size .*\) row [0-9]*/\1 row 64/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: op needs 512 bytes of '@x', which has 64 a token
// RUN: sed 's/slot @block.activations size <[0-9]*>/slot @block.activations size <512>/' %t.two.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=QUADS
// QUADS: 'step.{{put|block_view}}' op needs {{[0-9]+}} bytes of '@block.activations', which has 512 bytes
// RUN: sed 's/logits \(.*\)width = 131072,/logits \1width = 131071,/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=LOGITS
// LOGITS: 'step.logits' op has lanes for 131071 logits, not for a vocabulary of 131072

//===--- KV caches ---===//

// RUN: sed 's/kv <0>/kv <1048576>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=CACHE
// CACHE: 'step.kv_store' op has a cache that ends at 2097152 bytes of 1048576 bytes
// CACHE: note: called for weights at 536870912 and a cache at 1048576 bytes
// RUN: sed 's/kv_store value \(.*\)stride = 256>/kv_store value \1stride = 256, base = 16>/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=ELEMENT
// ELEMENT: 'step.kv_store' op stores element 527 of 512 in the cache
// RUN: sed 's/positions = 512/positions = 480/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=RING
// RING: 'step.attention' op a ring of 480 positions is not a multiple of its chunk of 64
// RUN: sed 's/positions = 512/positions = 448/' %t.step.mlir | not sparkc-opt --step-verify-static 2>&1 | FileCheck %s --check-prefix=WINDOW
// WINDOW: 'step.attention' op a ring of 448 positions does not hold its window
