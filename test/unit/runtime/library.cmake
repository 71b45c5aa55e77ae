# libsparkc.so exports the C interface alone, and runs on any x86-64.
#   cmake -DLIBRARY=libsparkc.so -P library.cmake
cmake_minimum_required(VERSION 3.25)
foreach(tool nm objdump)
  find_program(${tool}_path ${tool} REQUIRED)
endforeach()
execute_process(COMMAND ${nm_path} -D --defined-only ${LIBRARY}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" symbols "${symbols}")
string(REPLACE "\n" ";" symbols "${symbols}")
list(LENGTH symbols count)
if(count LESS 30)
  message(FATAL_ERROR "only ${count} symbols are exported")
endif()
foreach(symbol ${symbols})
  if(NOT symbol MATCHES " sparkc_[a-z0-9_]+$")
    message(FATAL_ERROR "exported: ${symbol}")
  endif()
endforeach()
execute_process(COMMAND ${objdump_path} -d --no-show-raw-insn ${LIBRARY}
  OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
if(NOT code MATCHES "%xmm0") # else the next search proves nothing
  message(FATAL_ERROR "no code was disassembled")
endif()
if(code MATCHES "[^\n]*%[yz]mm[^\n]*")
  message(FATAL_ERROR "not baseline x86-64: ${CMAKE_MATCH_0}")
endif()
