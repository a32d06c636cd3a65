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
  if(HASTEN_WHEEL)
    # Beside hasten/ in site-packages, else where they were found.
    string(REGEX REPLACE "^.*/(site|dist)-packages/" "$ORIGIN/../../" beside "${ARG_RPATH}")
    set_target_properties(plugin_${name} PROPERTIES INSTALL_RPATH "${beside};${ARG_RPATH}")
    install(TARGETS plugin_${name} LIBRARY DESTINATION hasten/plugins COMPONENT wheel)
    return()
  endif()
  install(TARGETS plugin_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hasten/plugins)
endfunction()

# hasten_add_plugin_test(NAME PLUGIN SOURCES file... DEFINITIONS definition...): plugin/NAME, which
# opens PLUGIN's library as the host does.
function(hasten_add_plugin_test name plugin)
  if(NOT HASTEN_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEFINITIONS" ${ARGN})
  add_executable(test_plugin_${name} ${ARG_SOURCES})
  target_link_libraries(test_plugin_${name} PRIVATE hasten_test_main hasten_headers hasten_warnings
                        Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(test_plugin_${name} PRIVATE ${CMAKE_SOURCE_DIR}/plugins)
  target_compile_definitions(test_plugin_${name} PRIVATE
    HASTEN_TEST_PLUGIN="$<TARGET_FILE:plugin_${plugin}>" ${ARG_DEFINITIONS})
  add_dependencies(test_plugin_${name} plugin_${plugin})
  add_test(NAME plugin/${name} COMMAND test_plugin_${name})
  set_tests_properties(plugin/${name} PROPERTIES LABELS backend:${plugin} TIMEOUT 120)
endfunction()

# hasten_add_torch_plugin(NAME SOURCES file...): a backend that runs in libtorch, out of the PyTorch
# wheel; nothing where there is none. NAME.cc alone sees torch. The libraries are linked by their
# files: the wheel's CMake package asks for MKL and CUDA, which plugins for the CPU do not need.
function(hasten_add_torch_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  hasten_find_wheel(torch torch)
  if(NOT EXISTS "${torch}/lib/libtorch_cpu.so")
    message(STATUS "plugin ${name}: not built: no PyTorch in the Python of HASTEN_PYTHON; "
                   "`pip install torch==2.13.0` there")
    return()
  endif()
  hasten_add_plugin(${name} ${name}.cc RPATH "${torch}/lib"
                    LIBS ${torch}/lib/libtorch_cpu.so ${torch}/lib/libc10.so)
  target_sources(plugin_${name} PRIVATE ${ARG_SOURCES})
  target_include_directories(plugin_${name} SYSTEM PRIVATE ${torch}/include)
  target_compile_definitions(plugin_${name} PRIVATE _GLIBCXX_USE_CXX11_ABI=1)
endfunction()
