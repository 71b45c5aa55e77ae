//===- Outputs.cpp - What a run writes to ---------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Outputs.h"
#include "codegen/output/OutputFile.h"
#include "dialect/import/ImportError.h"
#include "dialect/spark/Spark.h"
#include "tools/sparkc/Interrupt.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <unistd.h>

using namespace mlir;
using namespace sparkc;
namespace fs = llvm::sys::fs;

std::string sparkc::weightsBeside(StringRef object) {
  SmallString<256> weights(object);
  llvm::sys::path::replace_extension(weights, ".weights");
  return std::string(weights);
}

std::string sparkc::codesBeside(const DriverOptions &options) {
  StringRef beside = options.output;
  if (beside.empty() || beside == "-")
    beside = options.dequantize.empty() ? options.exportGguf
                                        : options.dequantize;
  beside = beside.rtrim('/');
  // All of the name, or k.so and k.mlir would share what the text names.
  return beside.empty() ? "" : (beside + ".codes").str();
}

llvm::Error
sparkc::replaceModel(StringRef object,
                     llvm::function_ref<llvm::Error()> renameWeights,
                     llvm::function_ref<llvm::Error()> renameObject) {
  const std::string weights = weightsBeside(object);
  std::string older;
  if (fs::exists(weights)) {
    older = temporaryName(weights, ".old");
    // Where there are no hard links there is no way back.
    if (fs::create_hard_link(weights, older))
      older.clear();
    else
      llvm::sys::RemoveFileOnSignal(older);
  }
  // Between the two a signal would leave one of the older model's files with one
  // of the newer's. Behind them all is done, and nothing there to end.
  InterruptGuard guard;
  llvm::Error error = renameWeights();
  if (!error && (error = renameObject())) {
    if (older.empty())
      fs::remove(weights);
    else
      fs::rename(older, weights);
  }
  if (!older.empty()) {
    fs::remove(older);
    llvm::sys::DontRemoveFileOnSignal(older);
  }
  return error;
}

llvm::Error sparkc::printOut(StringRef text) {
  llvm::outs() << text;
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return llvm::Error::success();
  std::error_code error = llvm::outs().error();
  // Or the stream would end the process when it goes.
  llvm::outs().clear_error();
  return llvm::createStringError(error, "<stdout>: " + error.message());
}

/// The directory of a file that need not be there.
static std::string directoryOf(StringRef path) {
  StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

/// The same for all names of a file, whether it is there or not.
static std::string realName(StringRef path) {
  SmallString<256> real;
  if (!fs::real_path(path, real))
    return std::string(real);
  if (fs::real_path(directoryOf(path), real))
    return path.str();
  llvm::sys::path::append(real, llvm::sys::path::filename(path));
  return std::string(real);
}

/// All files that are read: what options name, and what weights and assets of
/// the module lie in.
static llvm::StringSet<> inputsOf(const DriverOptions &options,
                                  ModuleOp module) {
  llvm::StringSet<> files;
  auto add = [&](StringRef path) {
    if (fs::is_regular_file(path))
      files.insert(realName(path));
  };
  for (const std::string &path :
       {options.input, options.calibrate, options.certify})
    add(path);
  add(options.input + "/config.json");
  add(options.input + "/model.safetensors.index.json");
  // Shards too that hold nothing of the model.
  std::error_code error;
  for (fs::directory_iterator file(options.input, error), end;
       !error && file != end; file.increment(error))
    if (StringRef(file->path()).ends_with(".safetensors"))
      add(file->path());
  for (auto weight : module.getOps<spark::WeightOp>()) {
    add(weight.getSource().getFile());
    if (ArrayAttr parts = weight.getSource().getParts())
      for (auto part : parts.getAsRange<spark::SourceAttr>())
        add(part.getFile());
  }
  for (auto asset : module.getOps<spark::AssetOp>())
    add(asset.getFile());
  return files;
}

/// A new file can be made beside `path`.
static llvm::Error checkDirectory(StringRef path) {
  std::string directory = directoryOf(path);
  if (fs::exists(directory) && !fs::is_directory(directory))
    return importError(path, "cannot write: " + Twine(strerror(ENOTDIR)));
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return importError(path, "cannot write: " + Twine(strerror(errno)));
  return llvm::Error::success();
}

llvm::Error sparkc::checkOutputs(const DriverOptions &options,
                                 ModuleOp module) {
  SmallVector<std::pair<StringRef, std::string>> outputs;
  auto add = [&](StringRef option, StringRef path) {
    if (!path.empty() && path != "-")
      outputs.emplace_back(option, path.str());
  };
  add("-o", options.output);
  if (options.emit == Stage::Shared && !options.output.empty())
    add("-o", weightsBeside(options.output));
  add("--report", options.report);
  add("--pareto", options.pareto);
  add("--export-gguf", options.exportGguf);
  if (!options.calibrate.empty())
    add("--calibrate (its codes)", codesBeside(options));

  llvm::StringSet<> inputs = inputsOf(options, module);
  llvm::StringMap<StringRef> seen;
  for (auto &[option, path] : outputs) {
    if (fs::exists(path) && !fs::is_regular_file(path))
      return importError(path, "cannot write: not a regular file");
    if (llvm::Error error = checkDirectory(path))
      return error;
    std::string real = realName(path);
    if (inputs.contains(real))
      return importError(path, "is read from; " + option +
                                   " must name another file");
    auto [other, first] = seen.try_emplace(real, option);
    if (!first)
      return importError(path, "is written to by " + other->second + " and " +
                                   option);
  }
  if (!options.dequantize.empty() && !fs::exists(options.dequantize))
    return checkDirectory(options.dequantize);
  return llvm::Error::success();
}
