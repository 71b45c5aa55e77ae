/*===- NotAModel.c - A shared object without a descriptor ----------------===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/
int not_a_model(void);
int not_a_model(void) { return 1; }
