//===- Emulator.cpp - Tile instructions where there are none --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library to preload. On a processor without AMX a tile instruction raises
// SIGILL; the handler here decodes it, executes it on tiles of the thread's own
// and goes on behind it. So tests run the very code that is shipped. Where the
// processor has AMX the library does nothing.
//
//   AMX_EMULATOR=refuse   the system permits no tile state
//   AMX_EMULATOR=count    say at the end, on stderr, what was executed
//
// As on Linux, tiles may be used once they were asked for, by
// sparkc_cpu_permit_amx() or a host's own arch_prctl: until then what touches
// their contents raises SIGILL (configurations can be loaded). A new thread has no
// configuration here; on Linux it has that of the thread that made it. What the processor answers with #UD ends the program
// by SIGILL, #GP by SIGSEGV, with a line on stderr.
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"
#include "test/tools/amx-emulator/Instruction.h"
#include "test/tools/amx-emulator/Tiles.h"

#include <asm/prctl.h>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cpuid.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

using namespace amx;

static const char *const names[] = {
    "ldtilecfg",  "sttilecfg", "tilerelease", "tilezero", "tileloadd",
    "tilestored", "tdpbssd",   "tdpbsud",     "tdpbusd",  "tdpbuud",
    "tdpbf16ps"};
constexpr unsigned kOpcodes = sizeof names / sizeof *names;

static bool active;
static bool refuses;
static std::atomic<bool> permitted;
static std::atomic<unsigned long> executed[kOpcodes];
static struct sigaction previous;

static thread_local State state __attribute__((tls_model("initial-exec")));

static bool processorHasAmx() {
  uint32_t a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);
}

/// Reports and lets the program end as by the signal's default.
static void end(int signal, const char *why, const ucontext_t *context) {
  char line[160];
  int n = snprintf(line, sizeof line, "amx-emulator: %s at rip %llx\n", why,
                   (unsigned long long)context->uc_mcontext.gregs[REG_RIP]);
  if (write(2, line, size_t(n)) < 0) {
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  raise(signal); // blocked until the handler returns, if it is SIGILL
}

static void collect(const ucontext_t *context, Registers &registers) {
  static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX,
                                REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
  for (int i = 0; i < 16; ++i)
    registers[i] = uint64_t(context->uc_mcontext.gregs[order[i]]);
}

static Fault execute(const Instruction &i) {
  auto *memory = reinterpret_cast<uint8_t *>(i.address);
  switch (i.opcode) {
  case Opcode::LdTileCfg:
    return loadConfig(state, memory);
  case Opcode::StTileCfg:
    storeConfig(state, memory);
    return Fault::None;
  case Opcode::TileRelease:
    release(state);
    return Fault::None;
  case Opcode::TileZero:
    return zero(state, i.reg);
  case Opcode::TileLoadD:
    return load(state, i.reg, memory, int64_t(i.stride));
  case Opcode::TileStoreD:
    return store(state, i.reg, memory, int64_t(i.stride));
  case Opcode::TdpBSSD:
    return multiplyBytes(state, i.reg, i.rm, i.vvvv, {false, false});
  case Opcode::TdpBSUD:
    return multiplyBytes(state, i.reg, i.rm, i.vvvv, {false, true});
  case Opcode::TdpBUSD:
    return multiplyBytes(state, i.reg, i.rm, i.vvvv, {true, false});
  case Opcode::TdpBUUD:
    return multiplyBytes(state, i.reg, i.rm, i.vvvv, {true, true});
  case Opcode::TdpBF16PS:
    return multiplyBf16(state, i.reg, i.rm, i.vvvv);
  }
  return Fault::UD;
}

static void handle(int signal, siginfo_t *info, void *opaque) {
  auto *context = static_cast<ucontext_t *>(opaque);
  Registers registers;
  collect(context, registers);
  Instruction instruction;
  const auto *code =
      reinterpret_cast<const uint8_t *>(context->uc_mcontext.gregs[REG_RIP]);
  unsigned long fsBase = 0;
  if (*code == 0x64)
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fsBase);
  if (*code == 0x65 || !decode(code, registers, fsBase, instruction)) {
    // Somebody else's.
    if (previous.sa_flags & SA_SIGINFO)
      return previous.sa_sigaction(signal, info, opaque);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
      return previous.sa_handler(signal);
    return end(SIGILL, "not a tile instruction", context);
  }
  if (instruction.opcode > Opcode::TileRelease &&
      !permitted.load(std::memory_order_relaxed))
    return end(SIGILL, "tiles are used without permission", context);
  char why[64];
  snprintf(why, sizeof why, "%s is refused",
           names[unsigned(instruction.opcode)]);
  switch (execute(instruction)) {
  case Fault::UD:
    return end(SIGILL, why, context);
  case Fault::GP:
    return end(SIGSEGV, why, context);
  case Fault::None:
    break;
  }
  executed[unsigned(instruction.opcode)].fetch_add(1,
                                                   std::memory_order_relaxed);
  context->uc_mcontext.gregs[REG_RIP] += instruction.bytes;
}

static void report() {
  fprintf(stderr, "amx-emulator:");
  for (unsigned i = 0; i < kOpcodes; ++i)
    fprintf(stderr, " %s %lu", names[i], executed[i].load());
  fprintf(stderr, "\n");
}

__attribute__((constructor)) static void start() {
  active = !processorHasAmx();
  if (!active)
    return;
  const char *mode = getenv("AMX_EMULATOR");
  refuses = mode && !strcmp(mode, "refuse");
  if (mode && !strcmp(mode, "count"))
    atexit(report);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGILL, &action, &previous);
}

//===----------------------------------------------------------------------===//
// The runtime's questions to the machine
//===----------------------------------------------------------------------===//

template <typename Function> static Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

extern "C" uint32_t sparkc_cpu_query(void) {
  auto *real = next<uint32_t(void)>("sparkc_cpu_query");
  uint32_t cpu = real ? real() : 0;
  return active && (cpu & SPARKC_CPU_HAS_AVX512VNNI) ? cpu | SPARKC_CPU_HAS_AMX
                                                     : cpu;
}

/// Asks for tiles: true if they are permitted.
static bool permit() {
  permitted = !refuses;
  return permitted;
}

/// What the system says to a host that asks by itself.
extern "C" long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (long &argument : a)
    argument = va_arg(list, long);
  va_end(list);
  constexpr long reqXcompPerm = 0x1023, tileData = 18;
  long result;
  if (active && number == SYS_arch_prctl && a[0] == reqXcompPerm &&
      a[1] == tileData) {
    result = permit() ? 0 : -EPERM;
  } else {
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
  }
  if (result >= 0 || result < -4095)
    return result;
  errno = int(-result);
  return -1;
}

extern "C" int sparkc_cpu_permit_amx(void) {
  if (!active) {
    auto *real = next<int(void)>("sparkc_cpu_permit_amx");
    return real ? real() : 0;
  }
  return permit();
}
