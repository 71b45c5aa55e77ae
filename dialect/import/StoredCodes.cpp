//===- StoredCodes.cpp - AWQ and GPTQ checkpoints -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/StoredCodes.h"
#include "dialect/import/ConfigReader.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// quantization_config
//===----------------------------------------------------------------------===//

/// Read below.
static constexpr StringLiteral understood[] = {
    "quant_method", "bits",  "group_size", "version", "zero_point",
    "desc_act",     "sym",   "format",     "checkpoint_format",
    "pack_dtype",   "lm_head"};

/// How codes were found, which modules have some (their tensors say so), and
/// settings of kernels: nothing about what the codes mean.
static constexpr StringLiteral harmless[] = {
    "modules_to_not_convert", "modules_in_block_to_quantize",
    "block_name_to_quantize", "module_name_preceding_first_block",
    "damp_percent", "damp_auto_increment", "true_sequential", "static_groups",
    "mse", "v2", "v2_alpha", "act_group_aware", "dataset", "nsamples", "seqlen",
    "tokenizer", "batch_size", "pad_token_id", "model_seqlen", "meta",
    "model_name_or_path", "model_file_base_name", "cache_block_outputs",
    "iters", "lr", "minmax_lr", "enable_minmax_tuning", "enable_quanted_input",
    "low_gpu_mem_usage", "gradient_accumulate_steps", "amp", "scale_dtype",
    "autoround_version", "quantizer", "pack_impl", "use_cuda_fp16",
    "use_exllama", "disable_exllama", "exllama_config", "max_input_length",
    "backend", "do_fuse", "modules_to_fuse", "fuse_max_seq_len",
    "is_marlin_format"};

/// The string of a key that has a default, in small letters.
static std::string word(ConfigReader &in, StringRef key, StringRef otherwise) {
  const json::Value *value = in.get(key);
  if (!value)
    return otherwise.str();
  std::optional<StringRef> text = value->getAsString();
  return text ? text->lower() : shown(*value);
}

static DType formatOf(ConfigReader &in, StringRef where) {
  std::string method = word(in, "quant_method", "");
  if (method == "awq") {
    std::string version = word(in, "version", "gemm");
    if (version != "gemm")
      in.fail(where + "version is \"" + version +
              "\"; of AWQ only \"gemm\" is read");
    return DType::AWQ4;
  }
  if (method != "gptq") {
    in.fail(method.empty()
                ? where + "quant_method is missing"
                : where + "quant_method is \"" + method +
                      "\"; only \"awq\" and \"gptq\" are read");
    return DType::GPTQ4;
  }
  in.mustNotBeTrue("desc_act", "columns in the order of their importance have "
                               "no groups of neighbours, which the packed "
                               "layouts are made of");
  in.mustNotBeTrue("is_marlin_format", "only the plain format is read");
  std::string format =
      word(in, "checkpoint_format", word(in, "format", "gptq"));
  if (format != "gptq" && format != "gptq_v2")
    in.fail(where + "checkpoint_format is \"" + format +
            "\"; of GPTQ only \"gptq\" and \"gptq_v2\" are read");
  return format == "gptq" ? DType::GPTQ4 : DType::GPTQ4_V2;
}

StoredCodes sparkc::readQuantizationConfig(const json::Value &value,
                                           std::string &fault) {
  StoredCodes codes;
  const std::string where = "quantization_config.";
  const json::Object *object = value.getAsObject();
  if (!object) {
    if (fault.empty())
      fault = ("quantization_config is " + kindOf(value) + ", not an object")
                  .str();
    return codes;
  }
  ConfigReader in(*object, fault, where);
  codes.dtype = formatOf(in, where);
  auto needs = [&](StringRef key, StringRef needed) {
    if (const json::Value *found = in.required(key))
      in.fail(where + key + " is " + shown(*found) + "; " + needed);
  };
  const json::Value *bits = in.get("bits"), *group = in.get("group_size");
  if (!bits || integerOf(*bits) != 4)
    needs("bits", "only 4 is read");
  codes.group = group ? integerOf(*group).value_or(0) : 0;
  if (codes.group != 32 && codes.group != 64 && codes.group != 128)
    needs("group_size", "32, 64 and 128 are read");
  if (std::string words = word(in, "pack_dtype", "int32"); words != "int32")
    in.fail(where + "pack_dtype is \"" + words + "\"; only \"int32\" is read");
  std::vector<StringLiteral> known(std::begin(understood),
                                   std::end(understood));
  known.insert(known.end(), std::begin(harmless), std::end(harmless));
  in.refuseUnknown(known);
  return codes;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {
/// The tensors of one matrix.
class CodeTensors {
public:
  CodeTensors(const std::string &stem, const TensorSet &tensors)
      : stem(stem), tensors(tensors) {}

  llvm::Expected<LogicalWeight::Part> part(StringRef suffix, DType dtype,
                                           std::vector<int64_t> shape) const;
  /// That column i is of group i / group, where there is a list.
  llvm::Error checkGroups(int64_t cols, int64_t group) const;

private:
  const std::string &stem;
  const TensorSet &tensors;
};
} // namespace

static llvm::Error tensorError(const TensorSet::Entry &entry,
                               const Twine &message) {
  return importError(entry.file->path(), "tensor " +
                                             quotedName(entry.info->name) +
                                             ": " + message);
}

llvm::Expected<LogicalWeight::Part>
CodeTensors::part(StringRef suffix, DType dtype,
                  std::vector<int64_t> shape) const {
  std::string name = stem + "." + suffix.str();
  const TensorSet::Entry *entry = tensors.find(name);
  if (!entry)
    return importError(tensors.origin(), "tensor " + quotedName(name) +
                                             " is missing; expected shape " +
                                             shapeText(shape));
  if (entry->info->shape != shape)
    return tensorError(*entry, "expected shape " + shapeText(shape) +
                                   " from config.json, found " +
                                   shapeText(entry->info->shape));
  if (entry->info->dtype != dtype)
    return tensorError(*entry, "expected dtype " + dtypeName(dtype) +
                                   ", found " + dtypeName(entry->info->dtype));
  return LogicalWeight::Part{entry->file->path(), dtype, entry->info->offset,
                             entry->info->bytes};
}

llvm::Error CodeTensors::checkGroups(int64_t cols, int64_t group) const {
  const TensorSet::Entry *entry = tensors.find(stem + ".g_idx");
  if (!entry)
    return llvm::Error::success();
  auto list = part("g_idx", DType::I32, {cols});
  if (!list)
    return list.takeError();
  const uint8_t *data = entry->file->data() + list->offset;
  for (int64_t c = 0; c < cols; ++c) {
    uint32_t found = llvm::support::endian::read32le(data + 4 * c);
    if (found != c / group)
      return tensorError(*entry, "column " + Twine(c) + " is of group " +
                                     Twine(int32_t(found)) + ", not " +
                                     Twine(c / group) +
                                     ": reordered columns (desc_act) are not "
                                     "read");
  }
  return llvm::Error::success();
}

llvm::Expected<LogicalWeight>
sparkc::resolveCodes(StringRef name, const std::string &stem,
                     llvm::ArrayRef<int64_t> shape, const StoredCodes &codes,
                     const TensorSet &tensors) {
  CodeTensors found(stem, tensors);
  const int64_t rows = shape[0], cols = shape[1], group = codes.group;
  if (rows % 8 || cols % group)
    return tensorError(*tensors.find(stem + ".qweight"),
                       "a matrix of " + Twine(rows) + " rows and " +
                           Twine(cols) +
                           " columns cannot be whole eights of rows and groups "
                           "of " +
                           Twine(group) + " columns");
  bool awq = codes.dtype == DType::AWQ4;
  auto weights =
      found.part("qweight", DType::I32,
                 awq ? std::vector{cols, rows / 8} : std::vector{cols / 8, rows});
  if (!weights)
    return weights.takeError();
  auto zeros = found.part("qzeros", DType::I32, {cols / group, rows / 8});
  if (!zeros)
    return zeros.takeError();
  auto scales = found.part("scales", DType::F16, {cols / group, rows});
  if (!scales)
    return scales.takeError();
  if (llvm::Error error = found.checkGroups(cols, group))
    return error;
  LogicalWeight weight{name.str(), weights->file,   codes.dtype,   rows,
                       cols,       weights->offset, weights->bytes};
  weight.group = group;
  weight.scales = std::move(*scales);
  weight.zeros = std::move(*zeros);
  return weight;
}
