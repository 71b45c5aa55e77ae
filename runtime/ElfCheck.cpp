//===- ElfCheck.cpp - Is a shared object all there? -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ElfCheck.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sparkc;

static bool readAll(int fd, void *to, size_t bytes, uint64_t offset) {
  char *at = static_cast<char *>(to);
  while (bytes) {
    ssize_t n = pread(fd, at, bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    at += n, offset += n, bytes -= n;
  }
  return true;
}

/// True if [offset, offset + count * each) lies in a file of `size` bytes.
static bool inside(uint64_t offset, uint64_t count, uint64_t each,
                   uint64_t size) {
  uint64_t bytes;
  return !__builtin_mul_overflow(count, each, &bytes) && offset <= size &&
         bytes <= size - offset;
}

static Failure check(int fd, uint64_t size, const char *name) {
  Elf64_Ehdr head;
  if (size < sizeof head || !readAll(fd, &head, sizeof head, 0) ||
      memcmp(head.e_ident, ELFMAG, SELFMAG))
    return fail(SPARKC_FORMAT, "%s: not a shared object", name);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64 ||
      head.e_type != ET_DYN || head.e_phentsize != sizeof(Elf64_Phdr))
    return fail(SPARKC_FORMAT, "%s: not an x86-64 shared object", name);
  bool whole = inside(head.e_phoff, head.e_phnum, sizeof(Elf64_Phdr), size) &&
               inside(head.e_shoff, head.e_shnum, head.e_shentsize, size);
  for (unsigned i = 0; whole && i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    whole = readAll(fd, &segment, sizeof segment,
                    head.e_phoff + i * sizeof segment) &&
            (segment.p_type == PT_NULL ||
             inside(segment.p_offset, segment.p_filesz, 1, size));
  }
  if (!whole)
    return fail(SPARKC_FORMAT, "%s: truncated: the file has %llu bytes", name,
                static_cast<unsigned long long>(size));
  return success();
}

Failure sparkc::checkElf(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return failErrno("%s: cannot open", path.c_str());
  struct stat info;
  Failure failure;
  if (fstat(fd, &info))
    failure = failErrno("%s: cannot read", path.c_str());
  else if (!S_ISREG(info.st_mode))
    failure = fail(SPARKC_IO, "%s: not a regular file", path.c_str());
  else
    failure = check(fd, info.st_size, path.c_str());
  close(fd);
  return failure;
}
