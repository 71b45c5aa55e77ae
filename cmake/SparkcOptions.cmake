# Compile options of all targets; the include root is the repository root.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                    ${PROJECT_SOURCE_DIR}/runtime/include)
add_compile_options(-Wall -Wextra -Wno-unused-parameter
                    -ffunction-sections -fdata-sections)
add_compile_definitions(SPARKC_VERSION="${PROJECT_VERSION}")
# Nearly all of a compile is headers, MLIR's above all: so a few sources of the
# compiler and of the unit tests are compiled as one.
option(SPARKC_BATCHES "Compile sources in batches, in half of the time" ON)
function(sparkc_compile_in_batches target)
  if(SPARKC_BATCHES)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  endif()
endfunction()
if(SPARKC_SANITIZE)
  add_compile_options(-fsanitize=${SPARKC_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all -g)
  add_link_options(-fsanitize=${SPARKC_SANITIZE})
endif()
