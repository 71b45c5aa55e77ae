# Where lit finds tests and what their RUN lines may call.
#
#   %S %s %t        as everywhere in LLVM
#   %sparkc_src     the root of the checkout
#   %golden         test/integration/golden, small models with exact logits
#   %spark_tiny     examples/spark-tiny
#   %python         Python 3 with numpy
#
# Features: `avx512`, `avx512vnni`: what the processor can execute;
# `sanitize`: the tools are built with a sanitizer.
import os

import lit.formats

config.name = "sparkc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
# The other folders of test/ have their own runners; Inputs are not tests.
config.excludes = ["unit", "integration", "fuzz", "bench", "lit", "Inputs"]
config.test_source_root = os.path.join(config.sparkc_source_root, "test")
config.test_exec_root = os.path.join(config.sparkc_binary_root, "test", "lit")

config.environment["PATH"] = os.pathsep.join(
    [config.sparkc_tools, config.llvm_tools, config.environment.get("PATH", "")])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# FileCheck variables are local to the block between two CHECK-LABELs.
config.substitutions.append(
    (r"\bFileCheck\b", os.path.join(config.llvm_tools, "FileCheck") + " --enable-var-scope"))
config.substitutions.append(("%sparkc_src", config.sparkc_source_root))
config.substitutions.append(
    ("%golden", os.path.join(config.test_source_root, "integration", "golden")))
config.substitutions.append(
    ("%spark_tiny", os.path.join(config.sparkc_source_root, "examples", "spark-tiny")))
config.substitutions.append(("%python", config.python))

try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next(l for l in cpuinfo if l.startswith("flags")).split()
except (OSError, StopIteration):
    flags = []
if all(f in flags for f in ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")):
    config.available_features.add("avx512")
    if "avx512_vnni" in flags:
        config.available_features.add("avx512vnni")
if config.sanitize:
    config.available_features.add("sanitize")
