//===- Report.cpp - What a benchmark found, as a table or JSON ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Bench.h"
#include "tools/sparkc-bench/Stats.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace sparkc::bench;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

uint64_t sparkc::bench::liveKvBytes(const sparkc_model_info &info,
                                    uint64_t pos) {
  // A key and a value of every KV head; 8-bit ones have a scale of 2 bytes for
  // each 16 dims besides.
  const uint64_t dims = uint64_t(info.kv_heads) * info.head_dim;
  const uint64_t element = info.kv_type == SPARKC_KV_F32   ? 4
                           : info.kv_type == SPARKC_KV_F16 ? 2
                                                           : 1;
  uint64_t position = 2 * dims * element;
  if (info.kv_type == SPARKC_KV_Q8)
    position += 2 * info.kv_heads * ((info.head_dim + 15) / 16) * 2;
  const uint64_t all = pos + 1;
  const uint64_t near = std::min<uint64_t>(all, info.window);
  return position *
         (info.full_layers * all + (info.layers - info.full_layers) * near);
}

double sparkc::bench::promptOperations(const sparkc_model_info &info,
                                       uint64_t tokens) {
  double head = double(info.vocab) * info.hidden;
  return 2 * ((double(info.linear_weights) - head) * double(tokens) + head);
}

double Attempt::movement() const {
  double ofPeak = moved(peak[0], peak[1]);
  if (ceilings.empty())
    return ofPeak;
  auto [least, most] = std::minmax_element(ceilings.begin(), ceilings.end());
  return std::max(moved(*least, *most), ofPeak);
}

double Attempt::ceiling() const {
  if (ceilings.empty())
    return 0;
  return std::accumulate(ceilings.begin(), ceilings.end(), 0.0) /
         double(ceilings.size());
}

template <typename Fn>
static std::vector<double> each(const std::vector<Attempt> &kept, Fn &&fn) {
  std::vector<double> values;
  for (const Attempt &a : kept)
    values.push_back(fn(a));
  return values;
}

static double meanOf(const double (&pair)[2]) {
  return (pair[0] + pair[1]) / 2;
}

double Result::speed() const {
  return median(
      each(kept, [&](const Attempt &a) { return tokens / a.seconds; }));
}

double Result::speedDeviation() const {
  return deviation(
      each(kept, [&](const Attempt &a) { return tokens / a.seconds; }));
}

double Result::ceiling() const {
  return median(each(kept, [](const Attempt &a) { return a.ceiling(); }));
}

std::optional<double> Result::ceilingShare() const {
  if (!bytesPerToken || ceiling() <= 0)
    return std::nullopt;
  return median(each(kept, [&](const Attempt &a) {
    return *bytesPerToken * tokens / a.seconds / (a.ceiling() * 1e9);
  }));
}

std::optional<double> Result::sustained() const {
  if (kept.empty())
    return std::nullopt;
  double best = 0;
  for (size_t i = 0; i < kept.front().readSeconds.size(); ++i) {
    double seconds = 0;
    for (const Attempt &a : kept)
      seconds += a.readSeconds[i] / double(kept.size());
    best = std::max(best, 1 / seconds);
  }
  return best > 0 ? std::optional(best) : std::nullopt;
}

std::optional<double> Result::sustainedShare() const {
  std::optional<double> read = sustained();
  if (!bytesPerToken || !read)
    return std::nullopt;
  double seconds = 0;
  for (const Attempt &a : kept)
    seconds += a.seconds;
  return *bytesPerToken * double(tokens * kept.size()) / seconds /
         (*read * 1e9);
}

static std::optional<double> part(const std::optional<PhaseTimes> &phases,
                                  double (*of)(const PhaseTimes &)) {
  if (!phases || phases->total <= 0)
    return std::nullopt;
  return of(*phases) / phases->total;
}

std::optional<double> Result::linearShare() const {
  return part(phases, [](const PhaseTimes &p) { return p.linear; });
}
std::optional<double> Result::attentionShare() const {
  return part(phases, [](const PhaseTimes &p) { return p.attention; });
}
std::optional<double> Result::otherShare() const {
  return part(phases, [](const PhaseTimes &p) { return p.other(); });
}
std::optional<double> Result::waitShare() const {
  return part(phases, [](const PhaseTimes &p) { return p.waiting; });
}

std::optional<double> Result::peak() const {
  double tops =
      median(each(kept, [](const Attempt &a) { return meanOf(a.peak); }));
  if (!prompt || tops <= 0)
    return std::nullopt;
  return tops;
}

std::optional<double> Result::peakShare() const {
  if (!peak())
    return std::nullopt;
  return median(each(kept, [&](const Attempt &a) {
    return operations / a.seconds / (meanOf(a.peak) * 1e12);
  }));
}

std::optional<double> Result::peakShareLinear() const {
  std::optional<double> whole = peakShare(), linear = linearShare();
  if (!whole || !linear || *linear <= 0)
    return std::nullopt;
  return *whole / *linear;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json value(const std::optional<double> &figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

std::string sparkc::bench::reportJson(const Report &report) {
  Json rows = Json::array();
  for (const Result &r : report.results) {
    Json row = {{"test", r.name},
                {"threads", report.threads},
                {"isa", report.info.isa},
                {"isa_reason", report.info.isa_reason},
                {"tokens_per_second", r.speed()},
                {"stddev", r.speedDeviation()},
                {"bytes_per_token", value(r.bytesPerToken)},
                {"read_ceiling_gbps", r.ceiling()},
                {"ceiling_share", value(r.ceilingShare())},
                {"read_sustained_gbps", value(r.sustained())},
                {"sustained_share", value(r.sustainedShare())},
                {"barriers", r.barriers},
                {"share_linear", value(r.linearShare())},
                {"share_attention", value(r.attentionShare())},
                {"share_other", value(r.otherShare())},
                {"profile_slowdown", value(r.slowdown)}};
    if (r.prompt) {
      row["peak_tops"] = value(r.peak());
      row["peak_share"] = value(r.peakShare());
      row["peak_share_linear"] = value(r.peakShareLinear());
      row["peak_instruction"] = report.peakInstruction;
    }
    row["share_barrier_wait"] = value(r.waitShare());
    row["barriers_per_step"] = report.info.barriers_per_step;
    row["depth"] = report.depth;
    row["model"] = report.info.object_path;
    row["scheme"] = report.info.scheme;
    row["synthetic_weights"] = report.synthetic;
    row["cpu"] = report.cpu;
    row["busy_before"] = value(report.busy);
    row["read_ceiling_memory"] = report.ceilingMemory;
    row["read_ceiling_huge_pages_gbps"] = report.hugePageCeiling > 0
                                              ? Json(report.hugePageCeiling)
                                              : Json(nullptr);
    row["thrown_away"] = r.discarded;
    row["ceiling_moved"] = r.worstMovement;
    row["logits_finite"] = r.finite;
    Json samples = Json::array();
    for (const Attempt &a : r.kept)
      samples.push_back({{"tokens_per_second", r.tokens / a.seconds},
                         {"read_ceiling_before", a.ceilings.front()},
                         {"read_ceiling_after", a.ceilings.back()},
                         {"read_ceilings", a.ceilings}});
    row["samples"] = samples;
    row["notes"] = report.notes;
    rows.push_back(row);
  }
  return rows.dump(1) + "\n";
}

//===----------------------------------------------------------------------===//
// Markdown
//===----------------------------------------------------------------------===//

static std::string text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
static std::string text(const char *format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

static std::string percent(const std::optional<double> &share) {
  return share ? text("%.1f %%", 100 * *share) : "-";
}

static std::string factor(const std::optional<double> &times) {
  return times ? text("%.2f", *times) : "-";
}

/// Row after row of cells, in columns as wide as they need to be.
static std::string aligned(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const auto &row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out += (i ? " | " : "| ") + std::string(widths[i] - row[i].size(), ' ') +
             row[i];
    out += " |\n";
    if (&row == &rows.front()) {
      for (size_t width : widths)
        out += "|" + std::string(width + 1, '-') + ":";
      out += "|\n";
    }
  }
  return out;
}

/// Rates, best first; a tenth of the passes is faster than the second of them.
static std::string passTable(const std::vector<Pass> &passes) {
  std::vector<std::vector<std::string>> rows = {
      {"reading once", "passes", "GB/s best", "tenth", "median", "mean"}};
  for (const Pass &pass : passes) {
    std::vector<double> sorted = pass.gbps;
    std::sort(sorted.rbegin(), sorted.rend());
    double seconds = 0; // a GB
    for (double gbps : sorted)
      seconds += 1 / gbps / sorted.size();
    rows.push_back({pass.name, text("%zu", sorted.size()),
                    text("%.1f", sorted.front()),
                    text("%.1f", sorted[sorted.size() / 10]),
                    text("%.1f", median(sorted)), text("%.1f", 1 / seconds)});
  }
  return aligned(rows);
}

std::string sparkc::bench::reportMarkdown(const Report &report) {
  const sparkc_model_info &info = report.info;
  std::string out =
      std::string("model    ") + info.object_path + ": " + info.scheme +
      text(", %u layers (%u full), hidden %u, vocabulary %u, %.1f MB of "
           "weights a step%s",
           info.layers, info.full_layers, info.hidden, info.vocab,
           info.bytes_per_step / 1e6,
           report.synthetic ? ", synthetic weights" : "");
  if (report.weightsInHugePages)
    out += text(" (%.0f %% in 2 MiB pages)", 100 * *report.weightsInHugePages);
  out +=
      "\nmachine  " + report.cpu +
      text(", %u thread%s, ", report.threads, report.threads > 1 ? "s" : "") +
      info.isa + " (" + info.isa_reason + ")";
  if (report.busy)
    out +=
        text(", processors %.1f %% busy before the start", 100 * *report.busy);
  out += "\nceiling  reading " + report.ceilingMemory;
  out += ", best of " +
         std::to_string(readPatterns().size()) + " patterns, at the start " +
         report.ceilingPattern.name();
  if (report.hugePageCeiling > 0)
    out += text("; from 2 MiB anonymous pages then %.1f GB/s",
                report.hugePageCeiling);
  out += "\n";
  if (report.depth)
    out += text("depth    %llu tokens before each test\n",
                (unsigned long long)report.depth);
  out += "\n";

  std::vector<std::vector<std::string>> generation = {
      {"test", "tok/s", "stddev", "MB/token", "GB/s", "read ceiling",
       "of ceiling", "sustained", "of sustained", "barriers", "linear",
       "attention", "other", "waiting", "profile x"}};
  std::vector<std::vector<std::string>> prompts = {
      {"test", "tok/s", "stddev", "TOPS", "int8 peak", "of peak",
       "linear of peak", "barriers", "linear", "attention", "other", "waiting",
       "profile x"}};
  for (const Result &r : report.results) {
    std::vector<std::string> row = {r.name, text("%.2f", r.speed()),
                                    text("%.2f", r.speedDeviation())};
    if (r.prompt) {
      row.push_back(text("%.3f", r.operations * r.speed() / r.tokens * 1e-12));
      row.push_back(r.peak() ? text("%.3f", *r.peak()) : "-");
      row.push_back(percent(r.peakShare()));
      row.push_back(percent(r.peakShareLinear()));
    } else {
      row.push_back(text("%.1f", *r.bytesPerToken / 1e6));
      row.push_back(text("%.2f", *r.bytesPerToken * r.speed() * 1e-9));
      row.push_back(text("%.2f", r.ceiling()));
      row.push_back(percent(r.ceilingShare()));
      row.push_back(r.sustained() ? text("%.2f", *r.sustained()) : "-");
      row.push_back(percent(r.sustainedShare()));
    }
    std::string barriers = text("%u", r.barriers);
    if (!r.prompt && r.barriers != info.barriers_per_step)
      barriers += text(" (%u said)", info.barriers_per_step);
    row.push_back(barriers);
    row.push_back(percent(r.linearShare()));
    row.push_back(percent(r.attentionShare()));
    row.push_back(percent(r.otherShare()));
    row.push_back(percent(r.waitShare()));
    row.push_back(factor(r.slowdown));
    (r.prompt ? prompts : generation).push_back(row);
  }
  if (!report.passes.empty())
    out += passTable(report.passes);
  if (generation.size() > 1)
    out += aligned(generation);
  if (prompts.size() > 1)
    out += (generation.size() > 1 ? "\n" : "") + aligned(prompts);
  for (const Result &r : report.results)
    if (r.discarded)
      out += text("\n%s: %zu repetition%s thrown away: a ceiling moved by more "
                  "than 10 %% across them\n",
                  r.name.c_str(), r.discarded, r.discarded > 1 ? "s" : "");
  for (const std::string &note : report.notes)
    out += "\nnote: " + note + "\n";
  return out;
}
