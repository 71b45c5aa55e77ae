//===- sparkc.cpp - The compiler's command line ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Grid.h"
#include "codegen/weights/WeightPolicy.h"
#include "passes/Passes.h"
#include "tools/common/Validators.h"
#include "tools/sparkc/Driver.h"
#include "tools/sparkc/Outputs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/InitLLVM.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>

using namespace sparkc;

static int fail(const std::string &message) {
  llvm::errs() << "sparkc: error: " << message << "\n";
  return 1;
}

/// One line, whatever an error holds.
static std::string oneLine(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// "950M", "0.95G", "1000000": a number of bytes.
static std::optional<double> bytesOf(llvm::StringRef text) {
  double unit = text.consume_back_insensitive("k")   ? 1e3
                : text.consume_back_insensitive("m") ? 1e6
                : text.consume_back_insensitive("g") ? 1e9
                                                     : 1;
  double value;
  if (text.getAsDouble(value) || !(value > 0) || !std::isfinite(value * unit))
    return std::nullopt;
  return value * unit;
}

/// The command line. CLI11, since the linker that runs in this process
/// registers LLVM's own options.
static void declare(CLI::App &app, DriverOptions &options) {
  static const std::map<std::string, Stage> stages = {
      {"spark", Stage::Spark},   {"fused", Stage::Fused},
      {"step", Stage::Step},     {"llvm", Stage::LLVM},
      {"asm", Stage::Assembly},  {"obj", Stage::Object},
      {"so", Stage::Shared}};
  app.set_version_flag("--version", "sparkc " SPARKC_VERSION);
  app.add_option("input", options.input,
                 "Checkpoint: a Hugging Face directory, or a GGUF file, "
                 "MODEL.gguf; or the text of a stage, STAGE.mlir")
      ->required();
  app.add_option("-o", options.output,
                 "Output. A model is two files: NAME.so and NAME.weights beside "
                 "it. Text goes to stdout without -o");
  app.add_option_function<std::string>(
         "--emit",
         [&options](const std::string &name) { options.emit = stages.at(name); },
         "Stop after a stage: spark (the model on tensors), fused (four linears "
         "a layer), step (phases, barriers, offsets), llvm (the LLVM dialect), "
         "asm, obj, so (default)")
      ->check(CLI::IsMember({"spark", "fused", "step", "llvm", "asm", "obj", "so"}));
  auto *weights = app.add_option("--weights", options.weights,
                 "How matrices are stored: f32, bf16, stored (as in the "
                 "checkpoint; f16 becomes f32), or a grid q4, q5, q6, q8 with "
                 ":g32, :g64 (default) or :g128 columns a scale and :sym for a "
                 "fixed zero point, or one of GGUF: q4k, q5k, q6k, q4_0, q4_1, "
                 "q5_0, q5_1, q8_0. Default: q4, and q6 for lm_head; of GGUF, "
                 "stored; codes of AWQ and GPTQ checkpoints as they are")
      ->check([](const std::string &text) {
        auto scheme = WeightScheme::parse(text);
        std::string reason;
        if (!scheme && text != "stored")
          reason = llvm::toString(scheme.takeError());
        else if (!scheme)
          llvm::consumeError(scheme.takeError());
        return reason;
      });
  app.add_option("--weights-for", options.weightsFor,
                 "GLOB=SCHEME: another scheme for the weights whose name "
                 "matches (lm_head, layers.3.down_proj, '*.q_k_v_proj'); "
                 "repeatable, the last that matches wins")
      ->check([](const std::string &text) -> std::string {
        // The option of the pass holds all rules, with commas between.
        if (text.find(',') != std::string::npos)
          return "expected one NAME=SCHEME, without ',', found '" + text + "'";
        return llvm::toString(WeightPolicy().addRule(text));
      })
      ->allow_extra_args(false);
  app.add_flag("--rotate{1}", options.rotate,
               "Rotate the residual stream and the values of each head within "
               "the weights, which spreads outliers and costs nothing at run "
               "time; of floats only. --rotate=SEED: other rotations")
      ->check(sparkc::positive());
  auto *calibrate =
      app.add_option("--calibrate", options.calibrate,
                     "Choose the codes of quantized weights on FILE, a text or "
                     "token ids: the unquantized model runs over it, and each "
                     "matrix is rounded so that little is lost on the inputs it "
                     "meets there. Without a word on grids they are chosen, too, "
                     "for as many bytes as the default's. Not the text to "
                     "evaluate on")
          ->type_name("FILE");
  app.add_option("--calibrate-windows", options.calibrateWindows,
                 "Windows of 512 tokens to calibrate on, spread over the text; "
                 "the default is 128, or as many as 4 GB hold")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->needs(calibrate);
  auto *certify =
      app.add_option("--certify", options.certify,
                     "Evaluate the finished build against the unquantized one on "
                     "FILE, a text or token ids, as sparkc-eval does, and store "
                     "the figures in the weights file (sparkc-run MODEL "
                     "--version prints them)")
          ->type_name("FILE");
  app.add_option("--certify-windows", options.certifyWindows,
                 "Only the first N windows of that text")
      ->type_name("N")
      ->check(sparkc::positive())
      ->needs(certify);
  auto *bits =
      app.add_option("--bits", options.bits,
                     "Choose a grid for each fused linear (4 bits with 128, 64 "
                     "or 32 columns a scale, 5, 6 or 8 bits), by what each was "
                     "measured to cost, within X bits a weight in all; needs "
                     "--calibrate. --weights-for fixes some")
          ->type_name("X")
          ->check(sparkc::positive())
          ->needs(calibrate)
          ->excludes(weights);
  app.add_option_function<std::string>(
             "--bytes-per-token",
             [&options](const std::string &text) {
               options.bytesPerToken = *bytesOf(text);
             },
             "The same within X bytes of weights that a token streams: 950M, "
             "0.95G")
          ->type_name("X")
          ->check([](const std::string &text) {
            return bytesOf(text) ? "" : "'" + text + "' is no number of bytes";
          })
          ->needs(calibrate)
          ->excludes(weights)
          ->excludes(bits);
  app.add_option("--max-kl", options.maxKl,
                     "With --certify: fail, and leave nothing, if the mean KL is "
                     "above X. With --calibrate and no other word on grids: "
                     "choose the cheapest that are expected to keep to X")
          ->type_name("X")
          ->check(sparkc::positive());
  app.add_option("--pareto", options.pareto,
                 "Draw what could be chosen, bits a weight against expected KL, "
                 "to FILE, as SVG")
      ->type_name("FILE")
      ->needs(calibrate);
  app.add_option("--kv", options.kv,
                 "Elements of the KV cache: f32, f16 (default), q8 (int8 and "
                 "a scale for each 16 dims of a key or value)")
      ->check(CLI::IsMember({"f32", "f16", "q8"}));
  app.add_option("--context", options.context,
                 "Default context of a session, in positions (default: the "
                 "smaller of the model's and 4096)")
      ->check(sparkc::integerFrom(1));
  app.add_option("--prefill-block", options.prefillBlock,
                 "Most tokens that a prefill reads at once (default: 256); 1: "
                 "no entry for blocks, prompts are read token by token")
      ->check(CLI::Range(int64_t(1), int64_t(4096)));
  app.add_option("--prefill-gemm", options.prefillGemm,
                 "onednn: blocks of tokens are multiplied by oneDNN, which the "
                 "host's libsparkc-onednn.so brings along; f32 and bf16 weights "
                 "only. A prefill's logits then differ from decode's by "
                 "rounding. Default: kernels compiled in, with decode's bits")
      ->check(CLI::IsMember({"onednn"}));
  app.add_option("--activations", options.activations,
                 "What the inputs of quantized matrices are rounded to: int8 "
                 "with a scale for each group, of weights (default) or, if it "
                 "has fewer, of so many elements, for the head half as "
                 "many: int8:g32 (default with --calibrate), int8:g64; or "
                 "bf16")
      ->check(CLI::IsMember({"int8", "int8:g32", "int8:g64", "bf16"}));
  auto *cpu = app.add_option("--mcpu", options.mcpu,
                             "CPU to compile for: native (default), x86-64-v3, "
                             "znver4, sapphirerapids, ...");
  app.add_option("--isa", options.isa,
                 "Code for several instruction sets in one object, of which "
                 "the host takes the best that its machine has: auto (amx, "
                 "avx512vnni, avxvnni, avx2), or a list of these and avx512, "
                 "by commas. Text of a stage wants the list again")
      ->check([](const std::string &text) {
        return text.empty() ? "auto or a list of instruction sets is missing"
                            : "";
      })
      ->excludes(cpu);
  app.add_option_function<std::string>(
         "--sanitize",
         [&options](const std::string &) { options.sanitizeThread = true; },
         "thread: announce accesses to shared memory to ThreadSanitizer; the "
         "host must be built with -fsanitize=thread")
      ->check(CLI::IsMember({"thread"}));
  app.add_option("--report", options.report,
                 "Write grid, bytes and error (SQNR in dB) of every tensor, bits "
                 "a weight and bytes a token to FILE, as JSON")
      ->type_name("FILE");
  app.add_option("--dequantize", options.dequantize,
                 "Write the values that the compiled weights stand for to the "
                 "new directory DIR2, as a Hugging Face checkpoint in F32 with a "
                 "head of its own. They are those of the other options "
                 "(--weights, --weights-for, ...); with -o a model is compiled "
                 "too")
      ->type_name("DIR2");
  app.add_option("--export-gguf", options.exportGguf,
                 "Write the compiled weights, code by code, to the GGUF file "
                 "FILE; every matrix must be stored as a type that GGUF has "
                 "(f32, bf16, q4k, q8_0, ...). With -o a model is compiled too")
      ->type_name("FILE");
  app.add_flag("--quiet", options.quiet, "No progress bar, no table");
  app.footer("Examples:\n"
             "  sparkc DIR -o model.so          compile a checkpoint\n"
             "  sparkc FILE.gguf -o model.so    compile a GGUF file, codes as "
             "they are\n"
             "  sparkc --emit=step DIR          show a stage\n"
             "  sparkc step.mlir -o model.so    go on from the text of a stage");
}

static int print(llvm::StringRef text) {
  llvm::Error error = printOut(text);
  return error ? fail(oneLine(std::move(error))) : 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A file that outgrows its limit is a write that fails, like any other.
  std::signal(SIGXFSZ, SIG_IGN);
  DriverOptions options;
  CLI::App app("sparkc compiles a Spark-X2.5 checkpoint to a shared object.",
               "sparkc");
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    return print(app.help());
  } catch (const CLI::CallForVersion &) {
    return print("sparkc " SPARKC_VERSION "\n");
  } catch (const CLI::ParseError &error) {
    return fail(error.what());
  }
  if (options.maxKl && options.calibrate.empty() && options.certify.empty())
    return fail("--max-kl needs --certify or --calibrate");
  if (!options.pareto.empty() && !options.choosesGrids())
    return fail("--pareto draws grids to choose from; --weights names one");
  if (options.emit < Stage::Assembly &&
      !(options.report.empty() && options.dequantize.empty() &&
        options.exportGguf.empty() && options.pareto.empty()))
    return fail("--report, --dequantize, --export-gguf and --pareto need packed "
                "weights: --emit asm, obj or so");
  // Without an output the weights are packed for the export alone.
  if (options.output.empty() &&
      !(options.dequantize.empty() && options.exportGguf.empty()) &&
      options.emit == Stage::Shared)
    options.emit = Stage::Step;
  if (options.output.empty() && options.emit >= Stage::Object)
    return fail("-o FILE is missing");
  if (options.emit == Stage::Shared &&
      llvm::StringRef(options.output).ends_with(".weights"))
    return fail("-o " + options.output +
                ": the weights go to a file of that name, beside the object");

  mlir::DialectRegistry registry;
  registry.insert<spark::SparkDialect, step::StepDialect, mlir::arith::ArithDialect,
                  mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::ub::UBDialect,
                  mlir::vector::VectorDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  if (llvm::Error error = compile(context, options))
    return fail(oneLine(std::move(error)));
  return 0;
}
