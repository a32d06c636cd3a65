# What the core needs: Debian packages, and DLPack 1.x out of the apache-tvm-ffi wheel
# (Debian's is 0.6: no versioned struct).
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)

# hasten_find_wheel(VARIABLE NAME): the folder of the package NAME that HASTEN_PYTHON would import,
# wherever it found it (a virtual environment may see the packages of another); empty without one.
# First without PYTHONPATH, behind which pip hides what is installed while it builds a wheel.
function(hasten_find_wheel variable name)
  set(folder "")
  foreach(isolated -I -B)
    if(HASTEN_PYTHON AND NOT folder)
      execute_process(
        COMMAND ${HASTEN_PYTHON} ${isolated} -c "if True:
          from importlib.util import find_spec
          spec = find_spec('${name}')
          print(*(spec.submodule_search_locations or [])[:1] if spec else [])"
        OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

hasten_find_wheel(tvm_ffi tvm_ffi)
find_path(DLPACK_INCLUDE_DIR dlpack/dlpack.h
          PATHS ${CMAKE_SOURCE_DIR}/.deps/dlpack/include ${tvm_ffi}/include NO_DEFAULT_PATH)
if(NOT DLPACK_INCLUDE_DIR)
  message(FATAL_ERROR "dlpack/dlpack.h 1.x not found; run `make setup`, or give -DDLPACK_INCLUDE_DIR=...")
endif()
add_library(hasten_headers INTERFACE)
target_include_directories(hasten_headers INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_include_directories(hasten_headers SYSTEM INTERFACE ${DLPACK_INCLUDE_DIR})
