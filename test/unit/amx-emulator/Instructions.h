//===- Instructions.h - What Instructions.s defines -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_AMXEMULATOR_INSTRUCTIONS_H
#define SPARKC_TEST_UNIT_AMXEMULATOR_INSTRUCTIONS_H

#include <cstdint>

extern "C" {

using TileFn = void(void *memory, int64_t stride);

#define SPARKC_TILE(n)                                                         \
  TileFn zero_##n, load_##n, store_##n
SPARKC_TILE(0);
SPARKC_TILE(1);
SPARKC_TILE(2);
SPARKC_TILE(3);
SPARKC_TILE(4);
SPARKC_TILE(5);
SPARKC_TILE(6);
SPARKC_TILE(7);
#undef SPARKC_TILE

#define SPARKC_PRODUCT(op) TileFn op##_012, op##_537, op##_760
SPARKC_PRODUCT(tdpbssd);
SPARKC_PRODUCT(tdpbsud);
SPARKC_PRODUCT(tdpbusd);
SPARKC_PRODUCT(tdpbuud);
SPARKC_PRODUCT(tdpbf16ps);
#undef SPARKC_PRODUCT

TileFn load_config, store_config, release, load_t1_5, load_scaled, load_disp8,
    load_disp8_back, load_disp32, load_no_index, load_high, load_high_itself,
    store_rsp, store_rsp_itself, config_absolute, config_scaled, config_rip,
    not_a_tile, undefined, load_without_sib, load_with_vvvv, load_tile_8,
    product_long, product_wide;
extern const uint8_t some_config[64];
}

#endif // SPARKC_TEST_UNIT_AMXEMULATOR_INSTRUCTIONS_H
