//===- FuzzWeights.cpp - Fuzzes the reader of weights files ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// An input is a weights file. Where it is long enough for a header its checksum
// is put right first, so that what stands behind that check is reached. A file
// that opens must hold what its sections promise.
//===----------------------------------------------------------------------===//
#include "runtime/Hash.h"
#include "runtime/Weights.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace sparkc;

static void require(bool holds) {
  if (!holds)
    abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (size >= sizeof(sparkc_weights_header)) {
    uint64_t hash = hash64(data, offsetof(sparkc_weights_header, hash));
    memcpy(&bytes[offsetof(sparkc_weights_header, hash)], &hash, sizeof hash);
  }
  int fd = memfd_create("weights", MFD_CLOEXEC);
  require(fd >= 0);
  require(write(fd, bytes.data(), size) == ssize_t(size));
  {
    WeightsFile file;
    Failure failure = file.open("/proc/self/fd/" + std::to_string(fd));
    require(!failure == failure.message().empty());
    if (!failure) {
      require(file.header().file_bytes == size);
      require(file.payload()[0] == file.payload()[0]);
      require(file.payload()[file.payloadBytes() - 1] < 256);
      std::string_view section;
      for (uint32_t kind = 0; kind < 10; ++kind)
        if (kind != SPARKC_SECTION_PAYLOAD && !file.section(kind, section))
          require(section.size() <= size);
      (void)!file.verify();
    }
  }
  close(fd);
  return 0;
}
