//===- StepChecks.cpp - What must be decided before code is made ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/StepChecks.h"
#include "codegen/weights/PackedLayout.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sparkc;

static LogicalResult unknownLayout(Operation *op, StringRef name) {
  return op->emitOpError() << "has an unknown layout '" << name << "'";
}

/// A layout that exists, with the groups that it has.
static FailureOr<Layout> checkLayout(Operation *op, StringRef name,
                                     int64_t group) {
  std::optional<Layout> layout = layoutFromName(name);
  if (!layout)
    return unknownLayout(op, name);
  if (!isQuantized(*layout)) {
    if (group)
      return op->emitOpError() << "has groups of " << group << ", but layout '"
                               << name << "' has none";
  } else if (!isGroupOf(*layout, group)) {
    return op->emitOpError() << "layout '" << name << "' has groups of "
                             << groupsOf(*layout) << ", not " << group;
  }
  return *layout;
}

static LogicalResult checkTiles(step::TilesOp tiles) {
  FailureOr<Layout> layout =
      checkLayout(tiles, tiles.getLayout(), tiles.getGroup());
  if (failed(layout))
    return failure();
  if (!isTiled(*layout))
    return tiles.emitOpError()
           << "layout '" << tiles.getLayout() << "' has no tiles";
  if (!tiles.getKernel())
    return tiles.emitOpError("has no kernel; run step-select-microkernel");
  return success();
}

static LogicalResult checkEmbed(step::EmbedOp embed) {
  FailureOr<Layout> layout =
      checkLayout(embed, embed.getLayout(), embed.getGroup().value_or(0));
  if (failed(layout))
    return failure();
  if (*layout == Layout::VectorF32)
    return embed.emitOpError()
           << "reads rows, which layout '" << embed.getLayout()
           << "' does not have";
  return success();
}

LogicalResult sparkc::checkDecided(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](step::SlotOp slot) -> LogicalResult {
        if (!slot.getOffset())
          return slot.emitOpError("has no offset; run step-plan-arena");
        return success();
      })
      .Case([](step::PackOp pack) {
        return LogicalResult(
            checkLayout(pack, pack.getLayout(), pack.getGroup()));
      })
      .Case([](step::TilesOp tiles) { return checkTiles(tiles); })
      .Case([](step::EmbedOp embed) { return checkEmbed(embed); })
      .Default(success());
}
