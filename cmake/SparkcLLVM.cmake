# Finds LLVM and MLIR 22 and sets up TableGen. MLIR is linked as one shared
# library: never the static pile.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "sparkc needs LLVM 22; found ${LLVM_PACKAGE_VERSION}")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# What HandleLLVMOptions would set, without its flags for LLVM's own build.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(SPARKC_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${SPARKC_LLVM_DEFINITIONS})
link_directories(${LLVM_LIBRARY_DIRS})

# sparkc_add_library(NAME sources... [DEPENDS gen...] [LINK libs...])
# A static library of the compiler, linked with libMLIR and libLLVM. Its own
# speed rarely matters and MLIR's headers are slow to optimise: -O1, unless HOT.
function(sparkc_add_library name)
  cmake_parse_arguments(ARG "HOT" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  target_compile_options(${name} PRIVATE
    $<$<NOT:$<BOOL:${LLVM_ENABLE_RTTI}>>:-fno-rtti>)
  sparkc_compile_in_batches(${name})
  if(NOT ARG_HOT)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
