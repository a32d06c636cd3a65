# What the core needs: Debian packages, and DLPack 1.x out of the apache-tvm-ffi wheel
# (Debian's is 0.6: no versioned struct).
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)

if(HASTEN_PYTHON)
  execute_process(
    COMMAND ${HASTEN_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_VARIABLE HASTEN_SITE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_path(DLPACK_INCLUDE_DIR dlpack/dlpack.h
          PATHS ${CMAKE_SOURCE_DIR}/.deps/dlpack/include ${HASTEN_SITE_PACKAGES}/tvm_ffi/include
          NO_DEFAULT_PATH)
if(NOT DLPACK_INCLUDE_DIR)
  message(FATAL_ERROR "dlpack/dlpack.h 1.x not found; run `make setup`, or give -DDLPACK_INCLUDE_DIR=...")
endif()
add_library(hasten_headers INTERFACE)
target_include_directories(hasten_headers INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_include_directories(hasten_headers SYSTEM INTERFACE ${DLPACK_INCLUDE_DIR})
