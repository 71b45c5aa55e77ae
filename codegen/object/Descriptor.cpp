//===- Descriptor.cpp - The one symbol of a compiled model ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Descriptor.h"
#include "codegen/weights/PackedLayout.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "sparkc_abi.h"
#include <set>

using namespace mlir;
using namespace sparkc;

namespace {

/// The fields of one constant struct, in order; the struct has C's layout.
class StructBuilder {
public:
  StructBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void u32(uint64_t value) { integer(b.getI32Type(), value); }
  void u64(uint64_t value) { integer(b.getI64Type(), value); }
  void affine(step::AffineAttr attr) {
    u64(attr.getConstant());
    u64(attr.getPerPosition());
  }
  void bytes(ArrayRef<uint8_t> value) {
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), value.size());
    add(LLVM::ConstantOp::create(
        b, loc, type,
        b.getStringAttr(StringRef(reinterpret_cast<const char *>(value.data()),
                                  value.size()))));
  }
  void address(StringRef symbol) {
    add(LLVM::AddressOfOp::create(b, loc, pointer(), symbol));
  }
  void null() { add(LLVM::ZeroOp::create(b, loc, pointer())); }

  /// Ends the initializer that the builder stands in.
  void finish(LLVM::GlobalOp global) {
    SmallVector<Type> types;
    for (Value field : fields)
      types.push_back(field.getType());
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
    Value value = LLVM::UndefOp::create(b, loc, type);
    for (auto [i, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(b, loc, value, field,
                                          ArrayRef<int64_t>{int64_t(i)});
    LLVM::ReturnOp::create(b, loc, value);
    global.setGlobalTypeAttr(TypeAttr::get(type));
  }

private:
  Type pointer() { return LLVM::LLVMPointerType::get(b.getContext()); }
  void integer(Type type, uint64_t value) {
    add(LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value)));
  }
  void add(Value field) { fields.push_back(field); }

  OpBuilder &b;
  Location loc;
  SmallVector<Value> fields;
};

class DescriptorBuilder {
public:
  DescriptorBuilder(ModuleOp module)
      : module(module), b(module.getContext()), loc(module.getLoc()) {}
  llvm::Error build(ArrayRef<TargetSpec> targets, ArrayRef<uint8_t> digest);

private:
  void string(StringRef name, StringRef text);
  LLVM::GlobalOp structure(StringRef name,
                           llvm::function_ref<void(StructBuilder &)> fill);

  ModuleOp module;
  OpBuilder b;
  Location loc;
};

} // namespace

void DescriptorBuilder::string(StringRef name, StringRef text) {
  std::string terminated = text.str() + '\0';
  b.setInsertionPointToEnd(module.getBody());
  LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), terminated.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name,
      b.getStringAttr(terminated));
}

LLVM::GlobalOp
DescriptorBuilder::structure(StringRef name,
                             llvm::function_ref<void(StructBuilder &)> fill) {
  b.setInsertionPointToEnd(module.getBody());
  auto global = LLVM::GlobalOp::create(
      b, loc, b.getI8Type(), /*isConstant=*/true, LLVM::Linkage::Internal, name,
      Attribute(), /*alignment=*/8);
  b.createBlock(&global.getInitializerRegion());
  StructBuilder fields(b, loc);
  fill(fields);
  fields.finish(global);
  return global;
}

llvm::Error DescriptorBuilder::build(ArrayRef<TargetSpec> targets,
                                     ArrayRef<uint8_t> digest) {
  auto configs = llvm::to_vector(module.getOps<spark::ConfigOp>());
  auto infos = llvm::to_vector(module.getOps<step::DescriptorOp>());
  if (configs.size() != 1 || infos.size() != 1)
    return llvm::createStringError(
        "the module must hold one spark.config and one step.descriptor");
  spark::ConfigOp config = configs[0];
  step::DescriptorOp info = infos[0];
  if (!info.getArena())
    return llvm::createStringError("the arena has not been planned");
  for (const TargetSpec &target : targets)
    if (!module.lookupSymbol<LLVM::LLVMFuncOp>(target.prefix + "sparkc_step"))
      return llvm::createStringError("the module defines no function " +
                                     target.prefix +
                                     "sparkc_step (llvm text of --isa needs the "
                                     "same --isa)");

  std::set<uint32_t> layouts;
  for (auto pack : module.getOps<step::PackOp>())
    if (auto layout = layoutFromName(pack.getLayout()))
      layouts.insert(uint32_t(*layout));

  string("compiler", "sparkc " SPARKC_VERSION);
  string("target", targetName(targets));
  string("scheme", config.getSchemeInWords());
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<int32_t> ids(layouts.begin(), layouts.end());
  LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getI32Type(), ids.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, "layouts",
      DenseElementsAttr::get(
          RankedTensorType::get({int64_t(ids.size())}, b.getI32Type()),
          ArrayRef<int32_t>(ids)));
  SmallVector<DictionaryAttr> phases;
  if (info.getPhases())
    llvm::append_range(phases, info.getPhases()->getAsRange<DictionaryAttr>());
  auto field = [](DictionaryAttr phase, StringRef name) {
    auto value = phase.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  for (auto [i, phase] : llvm::enumerate(phases))
    if (auto name = phase.getAs<StringAttr>("name"))
      string(("phase." + Twine(i)).str(), name);
    else
      return llvm::createStringError("a phase of the descriptor has no name");
  if (!phases.empty())
    structure("phases", [&](StructBuilder &s) {
      for (auto [i, phase] : llvm::enumerate(phases)) {
        s.address(("phase." + Twine(i)).str());
        s.u32(field(phase, "kind"));
        s.u32(0);
        s.u64(field(phase, "bytes"));
      }
    });
  structure("entries", [&](StructBuilder &s) {
    for (const TargetSpec &target : targets) {
      bool needsGemm =
          config.getPrefillGemm() && module.lookupSymbol<LLVM::LLVMFuncOp>(
                                         target.prefix + "sparkc_prefill");
      s.u32(target.isa);
      s.u32(target.abiFeatures | (needsGemm ? SPARKC_NEEDS_GEMM : 0));
      for (const char *name : {"sparkc_step", "sparkc_prefill",
                               "sparkc_step_profile", "sparkc_prefill_profile"})
        if (std::string entry = target.prefix + name;
            module.lookupSymbol<LLVM::LLVMFuncOp>(entry))
          s.address(entry);
        else
          s.null();
    }
  });
  LLVM::GlobalOp descriptor =
      structure(SPARKC_DESCRIPTOR_SYMBOL, [&](StructBuilder &s) {
        s.u32(SPARKC_DESCRIPTOR_MAGIC);
        s.u32(SPARKC_ABI_VERSION);
        s.u32(sizeof(sparkc_descriptor));
        s.u32(sizeof(sparkc_entry));
        s.address("compiler");
        s.address("target");
        s.address("scheme");
        s.bytes(digest);
        s.u64(info.getPayload());
        s.address("layouts");
        s.u32(ids.size());
        s.u32(info.getKvType() == "f32"  ? SPARKC_KV_F32
              : info.getKvType() == "q8" ? SPARKC_KV_Q8
                                         : SPARKC_KV_F16);
        s.u32(config.getVocab());
        s.u32(config.getHidden());
        s.u32(config.getIntermediate());
        s.u32(config.getLayers());
        s.u32(info.getFullLayers());
        s.u32(config.getHeads());
        s.u32(config.getKvHeads());
        s.u32(config.getHeadDim());
        s.u32(config.getWindow());
        s.u32(info.getRing());
        s.u64(config.getMaxContext());
        s.u64(config.getContext());
        s.u32(config.getPrefillBlock());
        s.u32(info.getCapacityMultiple());
        s.affine(info.getKv());
        s.affine(*info.getArena());
        s.u64(info.getBytesPerStep());
        s.u64(info.getLinearWeights());
        s.u32(info.getBarriers());
        s.u32(info.getFoldLayers());
        s.u64(info.getFoldThreshold());
        if (phases.empty())
          s.null();
        else
          s.address("phases");
        s.u32(phases.size());
        s.u32(targets.size());
        s.address("entries");
      });
  descriptor.setLinkage(LLVM::Linkage::External);
  return llvm::Error::success();
}

llvm::Error sparkc::finishModule(ModuleOp module, ArrayRef<TargetSpec> targets,
                                 ArrayRef<uint8_t> digest) {
  if (llvm::Error error = DescriptorBuilder(module).build(targets, digest))
    return error;
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (!isa<LLVM::LLVMDialect>(op.getDialect()))
      op.erase();
  return llvm::Error::success();
}
