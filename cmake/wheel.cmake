# What `pip install .` installs (pyproject.toml): the program as the presets build it, and the extension. The extension needs
# position-independent code, which is slower in places; so it is compiled by a build of its own, and the program's figures stay
# those of the same program without Python.
install(TARGETS attnbench RUNTIME DESTINATION attnbench/bin COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/results/schema.json DESTINATION attnbench)
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
include(ExternalProject)
set(extension ${PROJECT_BINARY_DIR}-extension)
ExternalProject_Add(attn_extension
  SOURCE_DIR ${PROJECT_SOURCE_DIR}
  BINARY_DIR ${extension}
  CMAKE_ARGS
    -DATTN_EXTENSION=ON -DATTN_ARCH=${ATTN_ARCH} -DPython_EXECUTABLE=${Python_EXECUTABLE}
    -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target _core
  INSTALL_COMMAND ""
  BUILD_ALWAYS ON
  USES_TERMINAL_BUILD ON)
install(DIRECTORY ${extension}/package/attnbench/ DESTINATION attnbench COMPONENT extension
  FILES_MATCHING PATTERN "_core.*.so")
