//===- ParetoPicture.cpp - Bits against KL, drawn -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Budget.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace sparkc;

namespace {

constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 84, kRight = 24, kTop = 48, kBottom = 56;

/// An axis from 0 or from `low` on, with ticks at 1, 2 or 5 times a power of
/// ten.
struct Axis {
  Axis(double low, double high, int ticks) {
    double span = std::max(high - low, 1e-12);
    double power = std::pow(10, std::floor(std::log10(span / ticks)));
    step = power;
    for (double factor : {1.0, 2.0, 5.0, 10.0})
      if (span / (step = factor * power) <= ticks)
        break;
    from = std::floor(low / step) * step;
    to = std::ceil(high / step) * step;
    if (to <= from)
      to = from + step;
    for (digits = 0; digits < 9; ++digits) {
      double scaled = step * std::pow(10, digits);
      if (std::fabs(scaled - std::round(scaled)) < 1e-6)
        break;
    }
  }
  double share(double value) const { return (value - from) / (to - from); }
  double from, to, step;
  int digits;
};

std::string escaped(llvm::StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '<'   ? "&lt;"
           : c == '&' ? "&amp;"
           : c == '>' ? "&gt;"
                      : std::string(1, c);
  return out;
}

} // namespace

std::string ParetoPicture::svg() const {
  double lowBits = 1e9, highBits = 0, highKl = 0;
  for (const std::vector<Point> *points : {&front, &chosen, &measured})
    for (const Point &p : *points) {
      lowBits = std::min(lowBits, p.bits);
      highBits = std::max(highBits, p.bits);
      highKl = std::max(highKl, p.kl);
    }
  if (highBits == 0)
    lowBits = 0;
  const Axis across(lowBits, highBits, 8), up(0, highKl, 8);
  auto x = [&](double bits) {
    return kLeft + across.share(bits) * (kWidth - kLeft - kRight);
  };
  auto y = [&](double kl) {
    return kHeight - kBottom - up.share(kl) * (kHeight - kTop - kBottom);
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" "
                     "height=\"%g\" viewBox=\"0 0 %g %g\" "
                     "font-family=\"sans-serif\" font-size=\"13\">\n",
                     kWidth, kHeight, kWidth, kHeight)
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
     << llvm::format("<text x=\"%g\" y=\"28\" font-size=\"16\">", kLeft)
     << escaped(title) << "</text>\n";
  auto label = [&](double atX, double atY, const char *anchor, double value,
                   int digits) {
    os << llvm::format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%.*f"
                       "</text>\n",
                       atX, atY, anchor, digits, value);
  };
  auto line = [&](double x0, double y0, double x1, double y1,
                  const char *colour) {
    os << llvm::format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" ",
                       x0, y0, x1, y1)
       << "stroke=\"" << colour << "\"/>\n";
  };
  for (double v = across.from; v < across.to + across.step / 2;
       v += across.step) {
    line(x(v), kTop, x(v), kHeight - kBottom, "#ddd");
    label(x(v), kHeight - kBottom + 18, "middle", v, across.digits);
  }
  for (double v = up.from; v < up.to + up.step / 2; v += up.step) {
    line(kLeft, y(v), kWidth - kRight, y(v), "#ddd");
    label(kLeft - 8, y(v) + 4, "end", v, up.digits);
  }
  line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "black");
  line(kLeft, kTop, kLeft, kHeight - kBottom, "black");
  os << llvm::format("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">bits a "
                     "weight</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 14)
     << llvm::format("<text transform=\"translate(20 %g) rotate(-90)\" "
                     "text-anchor=\"middle\">mean KL, nats</text>\n",
                     (kTop + kHeight - kBottom) / 2);
  if (!front.empty()) {
    os << "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\" "
          "points=\"";
    for (const Point &p : front)
      os << llvm::format("%.1f,%.1f ", x(p.bits), y(p.kl));
    os << "\"/>\n";
  }
  for (const Point &p : chosen)
    os << llvm::format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" "
                       "stroke=\"#c03020\" stroke-width=\"2\"><title>chosen: "
                       "%.3f bits, KL %.5f expected</title></circle>\n",
                       x(p.bits), y(p.kl), p.bits, p.kl);
  for (const Point &p : measured)
    os << llvm::format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" "
                       "fill=\"#c03020\"><title>measured: %.3f bits, KL %.5f"
                       "</title></circle>\n",
                       x(p.bits), y(p.kl), p.bits, p.kl);
  os << "</svg>\n";
  return text;
}
