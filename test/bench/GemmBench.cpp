//===- GemmBench.cpp - Block kernels beside oneDNN's matmul ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: gemm-bench [--benchmark_filter=REGEX] ...
//
// 512 tokens times the linear layers of the 1.7B: the block kernel that a
// prefill of this machine's instruction set uses (and, where that has tiles, the
// one of AVX-512-VNNI), on 4-bit weights in groups of
// 64 as they are packed, and oneDNN's int8 and bf16 matmuls on weights that it
// has laid out for itself beforehand. Each thread has matrices of its own and
// calls a oneDNN of one thread. What differs: ours unpacks the codes and scales
// each group of 64; oneDNN's int8 matmul scales each column once and has
// nothing to unpack.
//
// TOPS: 10^12 operations a second of all threads, a multiply-add being two.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/weights/PackedLayout.h"
#include "test/unit/kernels/KernelObject.h"
#include "test/unit/kernels/Machine.h"

#include <benchmark/benchmark.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <omp.h>

using namespace sparkc;

namespace {

constexpr int64_t kTokens = 512, kGroup = 64;
/// Tokens of a call, as in the step's lowering.
constexpr int64_t kSpan = 128;

struct Shape {
  const char *name;
  int64_t rows, cols;
};
const Shape shapes[] = {{"q_k_v_proj", 3088, 2048},
                        {"out_proj", 2048, 2048},
                        {"gate_up_proj", 13312, 2048},
                        {"down_proj", 2048, 6656}};

void fail(const std::string &message) {
  std::fprintf(stderr, "gemm-bench: error: %s\n", message.c_str());
  std::exit(1);
}

/// A kernel for 4 bits, a function for each K.
class Kernel {
public:
  Kernel(const TargetSpec &target, uint32_t isa) {
    const BlockKernel *kernel = selectBlockKernel("tile16_q4", isa);
    name = std::string("sparkc_q4_") + isaName(kernel->isa).str();
    tiles = kernel->tiles;
    byToken = kernel->byToken;
    for (int64_t cols : {2048, 6656})
      object.add(nameOf(cols), [&](Emitter &e, mlir::Value in, mlir::Value x,
                                   mlir::Value out) {
        kernel->build(e, {in, e.c(tiles), x, e.c(kSpan / kQuad), out, row(),
                          cols, kGroup, kGroup});
      });
    if (std::string error = object.compile(target); !error.empty())
      fail(error);
  }
  test::KernelFn *get(int64_t cols) { return object.get(nameOf(cols)); }
  /// Bytes of a token's results.
  int64_t row() const { return 64 * tiles; }

  std::string name;
  int64_t tiles; ///< of a call
  bool byToken;  ///< what lies so: the activations

private:
  static std::string nameOf(int64_t cols) { return "k" + std::to_string(cols); }
  test::KernelObject object;
};

/// Those that this machine runs, best first.
std::vector<std::unique_ptr<Kernel>> kernels() {
  auto target = resolveTarget("native");
  if (!target)
    fail(llvm::toString(target.takeError()));
  std::vector<std::unique_ptr<Kernel>> all;
  uint32_t isa = target->isa;
  if (isa == SPARKC_ISA_AMX) {
    if (test::runsAmx())
      all.push_back(std::make_unique<Kernel>(*target, isa));
    isa = SPARKC_ISA_AVX512VNNI;
  }
  all.push_back(std::make_unique<Kernel>(*target, isa));
  return all;
}

std::vector<uint8_t> randomBytes(size_t size, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<uint8_t> bytes(size + 64);
  for (uint8_t &byte : bytes)
    byte = rng();
  return bytes;
}

uint8_t *aligned(std::vector<uint8_t> &bytes) {
  return reinterpret_cast<uint8_t *>(
      (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64);
}

void report(benchmark::State &state, int64_t rows, int64_t cols) {
  double operations = 2.0 * rows * cols * kTokens * state.iterations();
  state.counters["TOPS"] =
      benchmark::Counter(operations * 1e-12, benchmark::Counter::kIsRate);
}

void sparkc_q4(benchmark::State &state, Shape shape, Kernel &kernel) {
  PackedMatrix matrix =
      PackedMatrix::plain(Layout::Tile16Q4, kTileRows, shape.cols, kGroup);
  // A token's activation, or those of a quad.
  const QuadLayout quad(shape.cols, kGroup);
  const QVecLayout qvec(shape.cols, kGroup);
  const int64_t each = kernel.byToken ? 1 : kQuad;
  const int64_t bytes = kernel.byToken ? qvec.bytes : quad.bytes;
  const int64_t scales = kernel.byToken ? qvec.scales : quad.scales;
  const int64_t sums = kernel.byToken ? qvec.sums : quad.sums;
  const int64_t strips = shape.rows / (kTileRows * kernel.tiles);
  const int64_t stripBytes = matrix.tileBytes() * kernel.tiles;
  auto tiles = randomBytes(strips * stripBytes, 1);
  auto x = randomBytes(kTokens / each * bytes, 2);
  // Random scales would be NaN and worse.
  for (int64_t i = 0; i < kTokens / each; ++i)
    std::fill_n(reinterpret_cast<float *>(aligned(x) + i * bytes + scales),
                (sums - scales) / 4, 0x1p-8f);
  for (int64_t at = 0; at + 1 < strips * stripBytes; at += matrix.batchBytes())
    for (int64_t i = 0; i < matrix.headZeros() / 2; ++i)
      reinterpret_cast<uint16_t *>(aligned(tiles) + at)[i] = 0x2400;
  std::vector<uint8_t> out(kSpan * kernel.row() + 64);
  test::KernelFn *run = kernel.get(shape.cols);
  for (auto _ : state)
    for (int64_t strip = 0; strip < strips; ++strip)
      for (int64_t token = 0; token < kTokens; token += kSpan)
        run(aligned(tiles) + strip * stripBytes,
            aligned(x) + token / each * bytes, aligned(out));
  report(state, strips * kTileRows * kernel.tiles, shape.cols);
}

/// oneDNN's matmul with the weights in the layout it asks for.
void onednn(benchmark::State &state, Shape shape, dnnl::memory::data_type x,
            dnnl::memory::data_type w) {
  using namespace dnnl;
  using tag = memory::format_tag;
  omp_set_num_threads(1);
  engine cpu(engine::kind::cpu, 0);
  stream order(cpu);
  memory::desc source({kTokens, shape.cols}, x, tag::ab);
  memory::desc weights({shape.cols, shape.rows}, w, tag::any);
  memory::desc result({kTokens, shape.rows}, memory::data_type::f32, tag::ab);
  primitive_attr attributes;
  if (w == memory::data_type::s8)
    attributes.set_output_scales(1 << 1,
                                 std::vector<float>(shape.rows, 0x1p-8f));
  matmul::primitive_desc description(matmul::desc(source, weights, result),
                                     attributes, cpu, /*allow_empty=*/true);
  if (!description)
    return state.SkipWithError("oneDNN has none for this machine");
  memory a(source, cpu), b(description.weights_desc(), cpu), c(result, cpu);
  // Small values: those of bf16 must be numbers.
  for (memory *operand : {&a, &b})
    std::memset(operand->get_data_handle(), 1, operand->get_desc().get_size());
  matmul multiply(description);
  for (auto _ : state) {
    multiply.execute(order, {{DNNL_ARG_SRC, a},
                             {DNNL_ARG_WEIGHTS, b},
                             {DNNL_ARG_DST, c}});
    order.wait();
  }
  report(state, shape.rows, shape.cols);
}

void onednn_int8(benchmark::State &state, Shape shape) {
  onednn(state, shape, dnnl::memory::data_type::u8,
         dnnl::memory::data_type::s8);
}

void onednn_bf16(benchmark::State &state, Shape shape) {
  onednn(state, shape, dnnl::memory::data_type::bf16,
         dnnl::memory::data_type::bf16);
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  auto own = kernels();
  for (const Shape &shape : shapes)
    for (int threads : {1, 2}) {
      auto add = [&](const std::string &name, auto run) {
        benchmark::RegisterBenchmark((shape.name + ("/" + name)).c_str(), run)
            ->Threads(threads)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      };
      for (auto &kernel : own)
        add(kernel->name, [shape, &kernel](benchmark::State &state) {
          sparkc_q4(state, shape, *kernel);
        });
      for (auto [name, run] : {std::pair("onednn_int8", onednn_int8),
                               std::pair("onednn_bf16", onednn_bf16)})
        add(name, [shape, run](benchmark::State &state) { run(state, shape); });
    }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
