# The installed copy: PREFIX/bin/hasten, the library with its headers and CMake package, plugins
# and the Python package under PREFIX/lib/hasten, schemas under PREFIX/share/hasten.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hasten)
# Not beside our headers: another project's dlpack/dlpack.h in PREFIX/include must stay its own.
set(dlpack_dir ${CMAKE_INSTALL_INCLUDEDIR}/hasten/third_party)

target_compile_features(hasten_shared INTERFACE cxx_std_20)
target_include_directories(hasten_shared SYSTEM INTERFACE $<INSTALL_INTERFACE:${dlpack_dir}>)
install(TARGETS hasten_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS hasten_shared EXPORT hastenTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/hasten DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${DLPACK_INCLUDE_DIR}/dlpack/dlpack.h DESTINATION ${dlpack_dir}/dlpack)
install(DIRECTORY python/hasten DESTINATION ${CMAKE_INSTALL_LIBDIR}/hasten/python
        FILES_MATCHING PATTERN "*.py" PATTERN "*.json" PATTERN "__pycache__" EXCLUDE
        PATTERN "*_test.py" EXCLUDE)
install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/hasten OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/hasten)

install(EXPORT hastenTargets NAMESPACE hasten:: DESTINATION ${package_dir})
configure_package_config_file(cmake/hastenConfig.cmake.in hastenConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(hastenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hastenConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/hastenConfigVersion.cmake DESTINATION ${package_dir})
