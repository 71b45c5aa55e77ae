//===- FuzzSession.cpp - Fuzzes the reader of saved sessions --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// An input is a saved session of the hand-written model of the runtime's unit
// tests. Its checksums are put right first, as far as its sizes allow. Whatever
// it holds, the session that it was restored into must go on, and if it was
// refused, as if nothing had happened.
//===----------------------------------------------------------------------===//
#include "runtime/Hash.h"
#include "test/unit/runtime/ToyFiles.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace sparkc;
using namespace sparkc::test;

static void require(bool holds) {
  if (!holds)
    abort();
}

/// Offsets in the header: see SessionFile.cpp.
enum : size_t { nTokens = 56, nSlots = 64, bodyHash = 72, hash = 80, end = 88 };

static void putRight(std::string &bytes) {
  if (bytes.size() < end)
    return;
  uint64_t tokens, slots;
  memcpy(&tokens, &bytes[nTokens], 8);
  memcpy(&slots, &bytes[nSlots], 8);
  if (tokens < bytes.size() / 4 && slots < bytes.size() / 8) {
    size_t lists = tokens * 4 + slots * 8;
    size_t cache = (end + lists + 4095) / 4096 * 4096;
    if (cache <= bytes.size()) {
      Hash64Stream body;
      body.update(&bytes[end], lists);
      body.update(bytes.data() + cache, bytes.size() - cache);
      uint64_t value = body.value();
      memcpy(&bytes[bodyHash], &value, 8);
    }
  }
  uint64_t value = hash64(bytes.data(), hash);
  memcpy(&bytes[hash], &value, 8);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TempDir dir;
  static ModelPtr model = openToy(dir);
  static const std::vector<int32_t> tokens = someTokens(12);
  static const std::vector<float> expected = reference(model, tokens);

  std::string bytes(reinterpret_cast<const char *>(data), size);
  putRight(bytes);
  int fd = memfd_create("session", MFD_CLOEXEC);
  require(fd >= 0);
  require(write(fd, bytes.data(), size) == ssize_t(size));
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  SessionPtr session = newSession(model);
  require(sparkc_prefill(session.get(), tokens.data(), 10, 0, nullptr) ==
          SPARKC_OK);
  sparkc_error why;
  sparkc_status status =
      sparkc_session_restore(session.get(), path.c_str(), &why);
  std::vector<float> logits(TOY_VOCAB);
  if (status == SPARKC_OK) {
    size_t position = sparkc_session_position(session.get());
    require(position <= sparkc_session_context(session.get()));
    status = sparkc_decode(session.get(), 1, logits.data());
    require(status == SPARKC_OK ||
            (status == SPARKC_CONTEXT_FULL &&
             position == sparkc_session_context(session.get())));
    require(sparkc_rewind(session.get(), position / 2) == SPARKC_OK);
  } else {
    require(why.message[0] != '\0');
    require(sparkc_session_position(session.get()) == 10);
    require(sparkc_decode(session.get(), tokens[10], logits.data()) ==
            SPARKC_OK);
    require(!memcmp(logits.data(), &expected[10 * TOY_VOCAB],
                    TOY_VOCAB * sizeof(float)));
  }
  close(fd);
  return 0;
}
