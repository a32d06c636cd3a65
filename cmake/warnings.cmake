# Warnings for our own code; an error under the dev preset.
option(HASTEN_WERROR "Warnings are errors" OFF)
add_library(hasten_warnings INTERFACE)
target_compile_options(hasten_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                       -Wnon-virtual-dtor $<$<BOOL:${HASTEN_WERROR}>:-Werror>)
