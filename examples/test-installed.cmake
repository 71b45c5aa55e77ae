# Installs sparkc into a fresh prefix, builds every example against that alone,
# runs each on the same models, and compares what they print.
#
#   cmake -DBUILD=... -DWORK=... -DTOY=... [-DSPARKC=...] -P test-installed.cmake
#
# BUILD   build folder of sparkc, all of it built
# WORK    scratch folder, emptied
# TOY     a model.so without a tokenizer, with its weights beside it
# SPARKC  the compiler: then spark-tiny is compiled and run too
cmake_minimum_required(VERSION 3.25)

function(run output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code
    OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit ${code}: ${command}\n${out}${err}")
  endif()
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(ignored ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

set(hosts c-host cpp-threads memory-limit python-ctypes)
foreach(host ${hosts})
  run(ignored ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/${host}
    -B ${WORK}/${host} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  if(NOT host STREQUAL python-ctypes)
    run(ignored ${CMAKE_COMMAND} --build ${WORK}/${host})
  endif()
endforeach()

# same(MODEL PROMPT N): all hosts print the same, and something.
function(same model prompt n)
  set(expected "")
  foreach(program c-host/c-host cpp-threads/cpp-threads
                  cpp-threads/cpp-threads-static python-ctypes/python-ctypes)
    run(text ${WORK}/${program} ${model} ${prompt} ${n})
    if(text MATCHES "^[ \n]*$")
      message(FATAL_ERROR "${program} printed nothing on ${model}")
    endif()
    if(NOT expected STREQUAL "" AND NOT text STREQUAL expected)
      message(FATAL_ERROR
        "${program} printed\n${text}where c-host printed\n${expected}")
    endif()
    set(expected "${text}")
  endforeach()
  message(STATUS "${model}: ${text}")
  set(printed "${text}" PARENT_SCOPE)
endfunction()

same(${TOY} "1 2 3 4 5 6 7 8 9 10 11 12 13" 20)
foreach(threads 1 2 3 7)
  run(text ${WORK}/cpp-threads/cpp-threads ${TOY}
    "1 2 3 4 5 6 7 8 9 10 11 12 13" 20 ${threads})
  if(NOT text STREQUAL printed)
    message(FATAL_ERROR "other tokens on ${threads} threads: ${text}")
  endif()
endforeach()

# A host says why it cannot open a model.
execute_process(COMMAND ${WORK}/c-host/c-host ${WORK}/none.so
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
if(NOT code EQUAL 1 OR NOT err MATCHES "none.so")
  message(FATAL_ERROR "no reason for a model that is not there: ${code} ${err}")
endif()

# Steps beside passes over memory: no turn is lost, and bits are compared.
set(limit ${WORK}/memory-limit/memory-limit)
set(quick -t 2 -r 3 -s 2 -p 1 -m 16)
run(text ${limit} ${quick} ${TOY} ${TOY})
string(REGEX MATCHALL "[0-9]+ turns?, [0-9.]+ GB/s" counts "${text}")
set(turns 0)
foreach(count ${counts})
  string(REGEX REPLACE " .*" "" count "${count}")
  math(EXPR turns "${turns} + ${count}")
endforeach()
if(NOT text MATCHES "the same bits as the first" OR
   NOT text MATCHES "([0-9]+) of 6 turns thrown away")
  message(FATAL_ERROR "memory-limit printed\n${text}")
endif()
math(EXPR turns "${turns} + ${CMAKE_MATCH_1}")
if(NOT turns EQUAL 6)
  message(FATAL_ERROR "memory-limit: ${turns} turns of 6\n${text}")
endif()
execute_process(COMMAND ${limit} -t 0 ${TOY}
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
if(NOT code EQUAL 1 OR NOT err MATCHES "from 1 to 4096: '0'")
  message(FATAL_ERROR "memory-limit -t 0: ${code} ${err}")
endif()

if(SPARKC)
  set(model ${WORK}/spark-tiny.so)
  # The installed compiler, not the one in the build folder.
  set(isa "")
  if(DEFINED ENV{SPARKC_ISA})
    set(isa --isa=$ENV{SPARKC_ISA})
  endif()
  run(ignored ${prefix}/bin/sparkc ${CMAKE_CURRENT_LIST_DIR}/spark-tiny
    -o ${model} ${isa})
  same(${model} "Once upon a time" 24)
  # And what the installed sparkc-run prints goes on just so.
  run(text ${prefix}/bin/sparkc-run ${model} -p "Once upon a time" -n 24
    --temp 0 --no-echo)
  string(STRIP "${text}" text)
  string(STRIP "${printed}" printed)
  if(NOT text STREQUAL printed)
    message(FATAL_ERROR "sparkc-run printed\n${text}\nthe hosts\n${printed}")
  endif()
  run(text ${limit} ${quick} ${TOY} ${model})
  if(NOT text MATCHES "spark-tiny.so: OTHER BITS than the first")
    message(FATAL_ERROR "memory-limit: two models compared\n${text}")
  endif()
endif()
