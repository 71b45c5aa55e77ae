# Compile options of all targets; the include root is the repository root.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                    ${PROJECT_SOURCE_DIR}/runtime/include)
add_compile_options(-Wall -Wextra -Wno-unused-parameter
                    -ffunction-sections -fdata-sections)
add_compile_definitions(SPARKC_VERSION="${PROJECT_VERSION}")
if(SPARKC_SANITIZE)
  add_compile_options(-fsanitize=${SPARKC_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all -g)
  add_link_options(-fsanitize=${SPARKC_SANITIZE})
endif()
