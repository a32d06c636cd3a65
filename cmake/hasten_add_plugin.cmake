# hasten_add_plugin(NAME SOURCE LIBS target...): a backend as lib/hasten/plugins/hasten_NAME.so.
# TEST_ONLY: into tests/plugins, where only those find it who name the folder; not installed.
function(hasten_add_plugin name source)
  cmake_parse_arguments(ARG "TEST_ONLY" "" "LIBS;RPATH" ${ARGN})
  add_library(plugin_${name} MODULE ${source})
  set_target_properties(plugin_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME hasten_${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    BUILD_RPATH "${ARG_RPATH}" INSTALL_RPATH "${ARG_RPATH}")
  target_link_libraries(plugin_${name} PRIVATE hasten_headers hasten_warnings ${ARG_LIBS})
  if(ARG_TEST_ONLY)
    set_target_properties(plugin_${name} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/plugins)
    return()
  endif()
  add_dependencies(product plugin_${name})
  install(TARGETS plugin_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hasten/plugins)
endfunction()
