//===- ReplayMain.cpp - Runs a fuzz target over its corpus ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: fuzz-NAME FILE-OR-FOLDER...
// Stands in for libFuzzer's main: one call for each file. A fault is a crash;
// an argument without any input is an error, so that a lost corpus shows.
//
//===----------------------------------------------------------------------===//
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fs = std::filesystem;

static bool replay(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)),
                          std::istreambuf_iterator<char>());
  if (!in)
    return false;
  // A block of just this size, so that a sanitizer sees a read past its end.
  std::vector<uint8_t> input(bytes.begin(), bytes.end());
  input.shrink_to_fit();
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

int main(int argc, char **argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<fs::path> files;
    std::error_code error;
    if (fs::is_directory(argv[i], error))
      for (const auto &entry : fs::directory_iterator(argv[i], error))
        files.push_back(entry.path());
    else
      files.push_back(argv[i]);
    if (error || files.empty()) {
      std::fprintf(stderr, "%s: error: %s: no inputs\n", argv[0], argv[i]);
      return 1;
    }
    for (const fs::path &file : files) {
      if (!replay(file)) {
        std::fprintf(stderr, "%s: error: %s: cannot be read\n", argv[0],
                     file.c_str());
        return 1;
      }
      ++inputs;
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs ? 0 : 1;
}
