// How the tiles of a phase are split: by bytes, over the runs in their order.
// Long phases leave half of every share to whoever is done; nobody computes
// logits that are not wanted.
//
// RUN: sparkc-opt %s --step-lower-to-llvm --canonicalize --cse | FileCheck %s

step.slot @x size <512> at 0
step.slot @y size <524288> at 512

// 255 tiles of 1024 bytes: just too short.
// CHECK-LABEL: llvm.func internal @step.short(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:[a-z0-9]*]]: i64, %[[N:[a-z0-9]*]]: i64,
// CHECK-DAG:     %[[ALL:.*]] = arith.constant 261120 : i64
// CHECK-DAG:     %[[UNITS:.*]] = arith.constant 255 : i64
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 1024 : i64
// CHECK-DAG:     %[[ROUND:.*]] = arith.constant 1023 : i64
// CHECK-NOT:     atomicrmw
// CHECK:         %[[T1:.*]] = arith.addi %[[TID]],
// CHECK:         %[[TO:.*]] = arith.muli %[[T1]], %[[ALL]]
// CHECK:         %[[HI:.*]] = arith.divui %[[TO]], %[[N]]
// CHECK:         %[[FROM:.*]] = arith.muli %[[TID]], %[[ALL]]
// CHECK:         %[[LO:.*]] = arith.divui %[[FROM]], %[[N]]
// Tiles that start in [LO, HI).
// CHECK:         %[[A:.*]] = arith.addi %[[LO]], %[[ROUND]]
// CHECK:         %[[B:.*]] = arith.divui %[[A]], %[[BYTES]]
// CHECK:         %[[FIRST:.*]] = arith.minui %[[B]], %[[UNITS]]
// CHECK:         %[[C:.*]] = arith.addi %[[HI]], %[[ROUND]]
// CHECK:         %[[D:.*]] = arith.divui %[[C]], %[[BYTES]]
// CHECK:         %[[END:.*]] = arith.minui %[[D]], %[[UNITS]]
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[END]]
// CHECK-NOT:     atomicrmw

// One more, as two runs: every thread the first half of its own, then five
// pieces a thread, each half of what is left and the last all of it, that are
// claimed one at a time.
// CHECK-LABEL: llvm.func internal @step.long(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:[a-z0-9]*]]: i64, %[[N:[a-z0-9]*]]: i64,
// CHECK-DAG:     %[[ALL:.*]] = arith.constant 262144 : i64
// CHECK-DAG:     %[[OWN:.*]] = arith.constant -1 : i64
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : i64
// CHECK-DAG:     %[[FIVE:.*]] = arith.constant 5 : i64
// CHECK:         %[[ALONE:.*]] = arith.cmpi eq, %[[N]], %[[ONE]]
// CHECK:         %[[PIECES:.*]] = arith.muli %[[N]], %[[FIVE]]
// CHECK:         scf.while (%[[I:.*]] = %[[OWN]])
// CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[PIECES]]
// CHECK:           scf.condition(%[[MORE]]) %[[I]]
// CHECK:         } do {
// CHECK:           %[[MY:.*]] = arith.cmpi slt, %[[I]], %[[ZERO]]
// CHECK:           %[[P:.*]] = arith.select %[[MY]], %[[ZERO]], %[[I]]
// CHECK:           %[[TURN:.*]] = arith.remui %[[P]], %[[N]]
// CHECK:           %[[OWNER:.*]] = arith.select %[[MY]], %[[TID]], %[[TURN]]
// CHECK:           %[[INDEX:.*]] = arith.divui %[[P]], %[[N]]
// CHECK:           %[[FROM0:.*]] = arith.muli %[[OWNER]], %[[ALL]]
// CHECK:           %[[START:.*]] = arith.divui %[[FROM0]], %[[N]]
// CHECK:           %[[AFTER:.*]] = arith.addi %[[OWNER]], %[[ONE]]
// CHECK:           %[[TO0:.*]] = arith.muli %[[AFTER]], %[[ALL]]
// CHECK:           %[[STOP:.*]] = arith.divui %[[TO0]], %[[N]]
// CHECK:           %[[LENGTH:.*]] = arith.subi %[[STOP]], %[[START]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[INDEX]], %[[ONE]]
// CHECK:           %[[LEFT:.*]] = arith.shrui %[[LENGTH]], %[[NEXT]]
// CHECK:           %[[FROM:.*]] = arith.subi %[[STOP]], %[[LEFT]]
// CHECK:           %[[LAST:.*]] = arith.cmpi eq, %[[NEXT]], %[[FIVE]]
// CHECK:           %[[SECOND:.*]] = arith.addi %[[INDEX]], %[[TWO]]
// CHECK:           %[[REST:.*]] = arith.shrui %[[LENGTH]], %[[SECOND]]
// CHECK:           %[[NEXTFROM:.*]] = arith.subi %[[STOP]], %[[REST]]
// CHECK:           %[[TO:.*]] = arith.select %[[LAST]], %[[STOP]], %[[NEXTFROM]]
// CHECK:           %[[LO:.*]] = arith.select %[[MY]], %[[START]], %[[FROM]]
// CHECK:           %[[OWNTO:.*]] = arith.select %[[ALONE]], %[[STOP]], %[[FROM]]
// CHECK:           arith.select %[[MY]], %[[OWNTO]], %[[TO]]
// Both runs, the second from where the first ends.
// CHECK:           scf.for
// CHECK:           scf.for
// A thread alone has done all in the first round.
// CHECK:           %[[NEXT:.*]] = scf.if %[[ALONE]] -> (i64) {
// CHECK-NEXT:        scf.yield %[[PIECES]]
// CHECK-NEXT:      } else {
// CHECK:             %[[FIELD:.*]] = llvm.getelementptr inbounds %[[CTX]][64]
// CHECK:             %[[WORDS:.*]] = llvm.load %[[FIELD]]
// CHECK:             %[[CLAIMED:.*]] = llvm.getelementptr inbounds %[[WORDS]][192]
// CHECK:             %[[MINE:.*]] = llvm.atomicrmw add %[[CLAIMED]], %{{.*}} monotonic
// CHECK-NEXT:        %[[PIECE:.*]] = arith.extui %[[MINE]]
// CHECK-NEXT:        scf.yield %[[PIECE]]
// CHECK:           scf.yield %[[NEXT]]

// flags 36, bit 0: SPARKC_CTX_NO_LOGITS; logits 56.
// CHECK-LABEL: llvm.func internal @step.head(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:[a-z0-9]*]]: i64,
// CHECK-DAG:     %[[NONE:.*]] = arith.constant 0 : i64
// CHECK-DAG:     %[[ALL:.*]] = arith.constant 1024 : i64
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr inbounds %[[CTX]][36]
// CHECK:         %[[FLAGS:.*]] = llvm.load %[[FIELD]]
// CHECK:         %[[BIT:.*]] = arith.andi %[[FLAGS]], %[[ONE]]
// CHECK:         %[[SKIP:.*]] = arith.cmpi ne, %[[BIT]],
// CHECK:         %[[WORK:.*]] = arith.select %[[SKIP]], %[[NONE]], %[[ALL]]
// CHECK:         arith.muli %[[WORK]], %[[TID]]
// CHECK:         scf.for
// CHECK:           %[[LOGITSF:.*]] = llvm.getelementptr inbounds %[[CTX]][56]
step.func entry @step {
  step.phase "short" linear {
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 255
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 4080, stride = 4080>
    } : !step.vec<16>
  }
  step.barrier
  step.phase "long" linear {
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 100 paired
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
      %e = step.geglu %a, %b
      step.store %e, @y[%j] lanes <heads = 1, width = 1600, stride = 1600>
    } : !step.vec<16>
    step.tiles %x at 204800 layout "tile16_f32" cols 16 group 0 units 56
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 896, stride = 896, base = 1600>
    } : !step.vec<16>
  }
  step.barrier
  step.phase "head" linear {
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.logits %a[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
  }
  step.barrier
  step.return
}
