//===- Model.h - A compiled model that was opened ---------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_MODEL_H
#define SPARKC_RUNTIME_MODEL_H

#include "runtime/Failure.h"
#include "runtime/Memory.h"
#include "runtime/Weights.h"
#include "runtime/include/sparkc.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace sparkc {

/// A loaded shared object and its checked descriptor.
class ModelObject {
public:
  ModelObject() = default;
  ModelObject(const ModelObject &) = delete;
  ModelObject &operator=(const ModelObject &) = delete;
  ~ModelObject();

  /// Loads `path` and checks the descriptor for what this runtime relies on.
  Failure open(const std::string &path);
  /// Picks the entry: the first that the machine runs, or the one whose isa
  /// has the name `forced` (null or empty: none).
  Failure choose(const char *forced);

  const sparkc_descriptor &descriptor() const { return *desc; }
  const sparkc_entry &entry() const { return *chosen; }
  const std::string &isaReason() const { return reason; }
  const std::string &path() const { return file; }

private:
  std::string file;
  void *handle = nullptr;
  const sparkc_descriptor *desc = nullptr;
  const sparkc_entry *chosen = nullptr;
  std::string reason;
};

/// Checks a descriptor; `name` begins the message.
Failure checkDescriptor(const sparkc_descriptor &desc, const char *name);

/// An object over its weights. Immutable once open, but for the text state,
/// which is built on first use.
class Model {
public:
  Failure open(const std::string &so, const std::string &weights, bool verify);
  /// Without a weights file: see SPARKC_OPEN_SYNTHETIC.
  Failure openSynthetic(const std::string &so);

  const sparkc_descriptor &descriptor() const { return object.descriptor(); }
  const sparkc_entry &entry() const { return object.entry(); }
  const uint8_t *payload() const {
    return synthetic.data() ? synthetic.data() : weights.payload();
  }
  /// XXH3-128 of the payload.
  const uint8_t *payloadDigest() const { return payloadHash; }
  const WeightsFile &weightsFile() const { return weights; }
  const std::string &digest() const { return hex; }
  /// Null unless the entry needs one.
  sparkc_gemm_fn gemm() const { return hostGemm; }

  /// Bytes of a section of the weights file (sparkc_section_kind), checked;
  /// empty if there is none.
  Failure section(uint32_t kind, std::string_view &bytes) const {
    return weights.section(kind, bytes);
  }

  void describe(sparkc_model_info &info) const;

  /// Holder of what the text functions build of this model's sections, once;
  /// guarded by textMutex.
  mutable std::mutex textMutex;
  mutable std::shared_ptr<const void> text;

private:
  /// Picks the object's entry and loads what it needs.
  Failure choose();

  ModelObject object;
  sparkc_gemm_fn hostGemm = nullptr;
  WeightsFile weights; ///< not open if synthetic
  Memory synthetic;
  uint8_t payloadHash[16] = {};
  std::string hex, certificate;
};

/// a + b * capacity; false if it does not fit in an int64_t.
bool affineBytes(sparkc_affine size, uint64_t capacity, uint64_t &bytes);

} // namespace sparkc

/// The handle of the C interface.
struct sparkc_model {
  std::shared_ptr<const sparkc::Model> impl;
};

#endif // SPARKC_RUNTIME_MODEL_H
