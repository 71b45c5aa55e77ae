// Text at the llvm stage goes to the packer as it is.
//
// RUN: not sparkc %s -o %t.so 2>&1 | FileCheck %s
// CHECK: error: pack 'p' has an unknown layout 'columns'

step.pack @p at 0 layout "columns" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]
llvm.func internal @f() {
  llvm.return
}
