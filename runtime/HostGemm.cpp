//===- HostGemm.cpp - ctx->gemm of models that ask for it -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/HostGemm.h"

#include <dlfcn.h>
#include <string>
#include <unistd.h>

using namespace sparkc;

static constexpr char plugin[] = "libsparkc-onednn.so";

/// The plugin's path in the folder of this runtime (of the program that it is
/// linked into); its plain name where there is none.
static std::string pluginPath() {
  Dl_info own;
  if (!dladdr(reinterpret_cast<const void *>(&loadGemm), &own) ||
      !own.dli_fname)
    return plugin;
  std::string path = own.dli_fname;
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return plugin;
  path = path.substr(0, slash + 1) + plugin;
  return access(path.c_str(), F_OK) == 0 ? path : plugin;
}

Failure sparkc::loadGemm(const char *object, sparkc_gemm_fn &gemm) {
  // Never unloaded: oneDNN and libgomp leave things behind in threads.
  std::string path = pluginPath();
  void *handle =
      dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *why = dlerror();
    return fail(SPARKC_IO,
                "%s: compiled with --prefill-gemm=onednn, which needs %s: %s",
                object, plugin, why ? why : "cannot be loaded");
  }
  gemm = reinterpret_cast<sparkc_gemm_fn>(dlsym(handle, SPARKC_ONEDNN_SYMBOL));
  if (!gemm)
    return fail(SPARKC_MISMATCH,
                "%s: compiled with --prefill-gemm=onednn, but %s is of another "
                "version (no symbol %s)",
                object, path.c_str(), SPARKC_ONEDNN_SYMBOL);
  return success();
}
