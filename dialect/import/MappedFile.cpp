//===- MappedFile.cpp - A file mapped for reading -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/MappedFile.h"
#include "dialect/import/ImportError.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sparkc;

llvm::Expected<std::shared_ptr<MappedFile>>
MappedFile::open(llvm::StringRef path) {
  std::string name = path.str();
  // O_NONBLOCK: a FIFO is refused below, not waited for.
  int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return importError(path, std::strerror(errno));

  struct stat info;
  const char *reason = nullptr;
  void *base = MAP_FAILED;
  if (::fstat(fd, &info) != 0)
    reason = std::strerror(errno);
  else if (S_ISDIR(info.st_mode))
    reason = "is a directory, not a file";
  else if (!S_ISREG(info.st_mode))
    reason = "is not a plain file";
  else if (info.st_size == 0)
    reason = "the file is empty";
  else if ((base = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd,
                          0)) == MAP_FAILED)
    reason = std::strerror(errno);
  ::close(fd);
  if (reason)
    return importError(path, reason);
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, static_cast<const uint8_t *>(base), info.st_size));
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<uint8_t *>(base), static_cast<size_t>(length));
}

void MappedFile::drop(uint64_t offset, uint64_t bytes) const {
  if (offset >= length)
    return;
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t end = offset + std::min(bytes, length - offset);
  uint64_t first = offset / page * page;
  uint64_t last = end == length ? end : end / page * page;
  if (first < last)
    ::madvise(const_cast<uint8_t *>(base) + first, last - first, MADV_DONTNEED);
}
