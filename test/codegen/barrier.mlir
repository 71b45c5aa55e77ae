// The barrier that all phases share: who arrives last opens it, the others
// prefetch, look a bounded number of times, then ask the host to let them sleep.
//
// ctx: barrier 64, wait 72, wake 80, spins 112. The words of a barrier, each on
// a line of its own: arrived 0, generation 64, sleepers 128, claimed 192.
//
// RUN: sparkc-opt %s --step-lower-to-llvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func internal @barrier(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:.*]]: i64, %[[N:.*]]: i64, %[[AT:.*]]: !llvm.ptr, %[[BYTES:.*]]: i64)
// CHECK-DAG:     %[[SPINS:.*]] = arith.constant 2000 : i64
// CHECK-DAG:     %[[PAGE:.*]] = arith.constant 4096 : i64
// CHECK-DAG:     %[[LINE:.*]] = arith.constant 64 : i64
// CHECK-DAG:     %[[LAST:.*]] = arith.constant -1 : i64
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr inbounds %[[CTX]][64]
// CHECK:         %[[ARRIVED:.*]] = llvm.load %[[FIELD]]
// CHECK:         %[[GEN:.*]] = llvm.getelementptr inbounds %[[ARRIVED]][64]
// CHECK:         %[[SLEEPERS:.*]] = llvm.getelementptr inbounds %[[ARRIVED]][128]
// CHECK:         %[[CLAIMED:.*]] = llvm.getelementptr inbounds %[[ARRIVED]][192]
// The generation is read before the thread says that it has arrived.
// CHECK:         %[[SEEN:.*]] = llvm.load %[[GEN]] atomic acquire
// CHECK:         %[[BEFORE:.*]] = llvm.atomicrmw add %[[ARRIVED]], %[[ONE]] acq_rel
// CHECK:         %[[N1:.*]] = arith.addi %[[N]], %[[LAST]]
// CHECK:         %[[B64:.*]] = arith.extui %[[BEFORE]]
// CHECK:         %[[IS_LAST:.*]] = arith.cmpi eq, %[[B64]], %[[N1]]
// CHECK:         scf.if %[[IS_LAST]] {
// What the next barrier and the next phase start from is there before the
// generation that lets the others go.
// CHECK-NEXT:      llvm.store %[[ZERO]], %[[ARRIVED]] atomic monotonic
// CHECK-NEXT:      llvm.store %[[ZERO]], %[[CLAIMED]] atomic monotonic
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[SEEN]], %[[ONE]]
// CHECK-NEXT:      llvm.store %[[NEXT]], %[[GEN]] atomic seq_cst
// CHECK-NEXT:      %[[ASLEEP:.*]] = llvm.load %[[SLEEPERS]] atomic seq_cst
// CHECK-NEXT:      %[[ANY:.*]] = arith.cmpi ne, %[[ASLEEP]], %[[ZERO]]
// CHECK-NEXT:      scf.if %[[ANY]] {
// CHECK-NEXT:        %[[WAKEF:.*]] = llvm.getelementptr inbounds %[[CTX]][80]
// CHECK-NEXT:        %[[WAKE:.*]] = llvm.load %[[WAKEF]]
// CHECK:             llvm.icmp "ne" %[[WAKE]]
// CHECK:               llvm.call %[[WAKE]](%[[GEN]])
// CHECK:         } else {
// The first page of this thread's share of what comes next.
// CHECK:           %[[LO:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK:           %[[HI:.*]] = arith.divui %{{.*}}, %[[N]]
// CHECK:           %[[MOST:.*]] = arith.addi %[[LO]], %[[PAGE]]
// CHECK:           %[[END:.*]] = arith.minui %[[HI]], %[[MOST]]
// CHECK:           scf.for %[[I:.*]] = %[[LO]] to %[[END]] step %[[LINE]]
// CHECK-NEXT:        %[[P:.*]] = llvm.getelementptr inbounds %[[AT]][%[[I]]]
// CHECK-NEXT:        "llvm.intr.prefetch"(%[[P]]) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// ctx->spins looks, or 2000.
// CHECK:           llvm.getelementptr inbounds %[[CTX]][112]
// CHECK:           arith.select %{{.*}}, %[[SPINS]], %{{.*}} : i64
// CHECK:           scf.while
// CHECK:             llvm.load %[[GEN]] atomic seq_cst
// CHECK:             llvm.call_intrinsic "llvm.x86.sse2.pause"
// CHECK:           %[[WAITF:.*]] = llvm.getelementptr inbounds %[[CTX]][72]
// CHECK:           %[[WAIT:.*]] = llvm.load %[[WAITF]]
// CHECK:           llvm.icmp "ne" %[[WAIT]]
// A sleeper announces itself before it looks again: else its wake could be lost.
// CHECK:             llvm.atomicrmw add %[[SLEEPERS]], %[[ONE]] seq_cst
// CHECK:             scf.while
// CHECK:               %[[NOW:.*]] = llvm.load %[[GEN]] atomic seq_cst
// CHECK:               arith.cmpi eq, %[[NOW]], %[[SEEN]]
// CHECK:               llvm.call %[[WAIT]](%[[GEN]], %[[SEEN]])
// CHECK:             llvm.atomicrmw sub %[[SLEEPERS]], %[[ONE]] seq_cst
// Without a host to ask it goes on spinning.
// CHECK:           } else {
// CHECK:             scf.while
// CHECK:               llvm.load %[[GEN]] atomic seq_cst
// CHECK-NOT:           llvm.call %
// CHECK:               llvm.call_intrinsic "llvm.x86.sse2.pause"
// CHECK-NOT:         {{llvm.call|scf.while|atomic}}
// CHECK:         llvm.return
step.func entry @step {
  step.barrier
  step.return
}
