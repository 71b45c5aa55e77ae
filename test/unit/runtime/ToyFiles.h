//===- ToyFiles.h - Good and bad files of the hand-written model *- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TEST_TOYFILES_H
#define SPARKC_TEST_TOYFILES_H

#include "runtime/include/sparkc.h"
#include "test/unit/runtime/ToyShape.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// ThreadSanitizer does not see how libgomp's threads meet, and would report
/// its every hand-over. The SPMD tests run the same code on std::threads.
#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN()                                                      \
  GTEST_SKIP() << "libgomp is not built for ThreadSanitizer; see SpmdTest"
#else
#define SKIP_UNDER_TSAN() (void)0
#endif

namespace sparkc::test {

/// A fresh folder, removed with all it holds at the end.
class TempDir {
public:
  TempDir();
  ~TempDir();
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  const std::string path;
};

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &bytes);

/// The bytes of a weights file for the toy: a payload and a tokenizer section.
/// `alter` may change the header (before its checksum, which stays right).
std::string weightsImage(
    const std::function<void(sparkc_weights_header &)> &alter = nullptr);

enum class Toy { Prefill, StepOnly, Fat, Profile };

/// The toy's shared object with its descriptor's numbers altered.
std::string
objectImage(const std::function<void(sparkc_descriptor &)> &alter = nullptr,
            Toy kind = Toy::Prefill);

/// A pair of files in a folder: dir/NAME.so and dir/NAME.weights.
std::string writePair(const TempDir &dir, const std::string &object,
                      const std::string &weights,
                      const std::string &name = "model");

struct ModelDeleter {
  void operator()(sparkc_model *m) const { sparkc_close(m); }
};
struct SessionDeleter {
  void operator()(sparkc_session *s) const { sparkc_session_destroy(s); }
};
using ModelPtr = std::unique_ptr<sparkc_model, ModelDeleter>;
using SessionPtr = std::unique_ptr<sparkc_session, SessionDeleter>;

/// The toy, opened; a failed expectation and null if that fails.
ModelPtr openToy(const TempDir &dir, Toy kind = Toy::Prefill);
SessionPtr newSession(const ModelPtr &model, uint64_t context = 0,
                      uint32_t threads = 1, uint32_t wait = 0,
                      uint32_t chunk = 0);

/// n token ids that do not repeat in short cycles.
std::vector<int32_t> someTokens(size_t n, uint32_t seed = 1);

/// Logits of every token, computed one at a time in a new session.
std::vector<float> reference(const ModelPtr &model,
                             const std::vector<int32_t> &tokens);

} // namespace sparkc::test

#endif // SPARKC_TEST_TOYFILES_H
