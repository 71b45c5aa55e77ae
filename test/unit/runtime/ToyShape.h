/*===- ToyShape.h - Numbers of the hand-written model --------------*- C -*-===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/
#ifndef SPARKC_TEST_TOYSHAPE_H
#define SPARKC_TEST_TOYSHAPE_H

#define TOY_VOCAB 37
#define TOY_WINDOW 5
#define TOY_BLOCK 6
/* window + block - 1, rounded up */
#define TOY_RING 12
#define TOY_BARRIERS 3
/* Payload: byte i is (i * 7 + 3) mod 256. */
#define TOY_PAYLOAD 4096
/* XXH3-128 of it. */
#define TOY_DIGEST                                                             \
  {                                                                            \
    0x15, 0x46, 0x86, 0x74, 0x23, 0x10, 0x5c, 0xd5, 0xd7, 0x42, 0x87, 0x46,    \
        0x84, 0x2b, 0xe3, 0x7e                                                 \
  }

#ifndef TOY_PREFILL
#define TOY_PREFILL 1
#endif

#endif /* SPARKC_TEST_TOYSHAPE_H */
