# What `pip install .` installs (pyproject.toml): the program as the presets build it, and the extension, which links the same objects.
install(TARGETS attnbench RUNTIME DESTINATION attnbench/bin COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/results/schema.json DESTINATION attnbench)
install(TARGETS _core LIBRARY DESTINATION attnbench COMPONENT extension)
# Headers for plug-ins, which need a compiler and CMake and no package beside: those of the libraries
# lie here too, of the version that the program was compiled with. The folders are those of `cmake --install`, below attnbench/.
include(cmake/plugin_package.cmake)
set(headers attnbench/include/attnbench)
find_path(eigen_headers Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
find_path(fmt_headers fmt/core.h REQUIRED)
find_path(hwy_headers hwy/highway.h REQUIRED)
install(DIRECTORY ${eigen_headers}/Eigen ${fmt_headers}/fmt ${hwy_headers}/hwy DESTINATION attnbench/include/libraries
  PATTERN "tests" EXCLUDE)
add_library(attn_plugin_headers INTERFACE)
get_target_property(options attn_flags INTERFACE_COMPILE_OPTIONS)
get_target_property(definitions attn_flags INTERFACE_COMPILE_DEFINITIONS)
target_compile_options(attn_plugin_headers INTERFACE ${options})
target_compile_definitions(attn_plugin_headers INTERFACE ${definitions} FMT_HEADER_ONLY)
target_include_directories(attn_plugin_headers INTERFACE $<INSTALL_INTERFACE:${headers}>)
target_include_directories(attn_plugin_headers SYSTEM INTERFACE $<INSTALL_INTERFACE:attnbench/include/libraries>)
set_target_properties(attn_plugin_headers PROPERTIES EXPORT_NAME flags)
install(TARGETS attn_plugin_headers EXPORT attnbenchTargets)
attn_install_plugin_package(cmake/attnbenchWheelConfig.cmake.in ${headers} attnbench/lib/cmake/attnbench)
# Whose code a wheel holds, compiled in or brought along by auditwheel: their licences, as Debian's packages and nanobind state them.
set(packages libbenchmark1* libboost-program-options1*[0-9] libfmt[0-9]* libfmt-dev libhwy-dev libgomp1 libhwy1* libpng16* zlib1g libeigen3-dev
  nlohmann-json3-dev libtomlplusplus-dev)
list(TRANSFORM packages REPLACE "(.+)" "/usr/share/doc/\\1/copyright")
file(GLOB notices ${packages})
file(GLOB bound ${nanobind_DIR}/../../nanobind-*.dist-info/licenses/LICENSE)
foreach(notice ${notices} ${bound})
  string(REGEX REPLACE "/(copyright|licenses/LICENSE)$" "" package ${notice})
  get_filename_component(package ${package} NAME)
  file(REAL_PATH ${notice} file) # a package may link to that of another
  install(FILES ${file} DESTINATION ${SKBUILD_METADATA_DIR}/licenses RENAME ${package}.txt)
endforeach()
