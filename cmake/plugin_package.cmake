# attn_install_plugin_package(config headers package): the headers that plug-ins are compiled with, below the folder `headers`,
# and what find_package(attnbench) reads, from the template `config`, in the folder `package`. The targets in the export set
# attnbenchTargets are named by whoever calls it.
include(CMakePackageConfigHelpers)

function(attn_install_plugin_package config headers package)
  install(DIRECTORY core variants tasks DESTINATION ${headers} FILES_MATCHING PATTERN "*.h" PATTERN "precompiled.h" EXCLUDE)
  install(FILES harness/plugin/entry.h ${PROJECT_BINARY_DIR}/interface/harness/plugin/interface.h
    DESTINATION ${headers}/harness/plugin)
  install(EXPORT attnbenchTargets NAMESPACE attnbench:: DESTINATION ${package})
  configure_package_config_file(${config} ${PROJECT_BINARY_DIR}/attnbenchConfig.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnbenchConfigVersion.cmake COMPATIBILITY ExactVersion)
  install(FILES ${PROJECT_BINARY_DIR}/attnbenchConfig.cmake ${PROJECT_BINARY_DIR}/attnbenchConfigVersion.cmake
    cmake/attnbenchPlugin.cmake cmake/plugin_entry.cc.in DESTINATION ${package})
endfunction()
