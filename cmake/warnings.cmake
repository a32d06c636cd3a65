# Warnings for our own code; an error under the dev preset.
option(HASTEN_WERROR "Warnings are errors" OFF)
add_library(hasten_warnings INTERFACE)
target_compile_options(hasten_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                       -Wnon-virtual-dtor $<$<BOOL:${HASTEN_WERROR}>:-Werror>)
# g++ 12 takes std::string's operator+ for an overlapping copy (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(hasten_warnings INTERFACE -Wno-restrict)
endif()
