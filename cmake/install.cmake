# What `cmake --install` gives: the program, the headers and libraries of core, variants and tasks, and the package that
# find_package(attnbench) reads, with attnbench_add_plugin().
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/attnbench)

set(installed attn_flags)
foreach(library dense core variants tasks)
  foreach(kind IN ITEMS "" _f64)
    if(TARGET attn_${library}${kind})
      set_target_properties(attn_${library}${kind} PROPERTIES EXPORT_NAME ${library}${kind})
      list(APPEND installed attn_${library}${kind})
    endif()
  endforeach()
endforeach()
set_target_properties(attn_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS attnbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${installed} EXPORT attnbenchTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attnbenchTargets NAMESPACE attnbench:: DESTINATION ${package})

install(DIRECTORY core variants tasks DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attnbench
  FILES_MATCHING PATTERN "*.h" PATTERN "precompiled.h" EXCLUDE)
install(FILES harness/plugin/entry.h ${PROJECT_BINARY_DIR}/interface/harness/plugin/interface.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attnbench/harness/plugin)

# What draws, reports and exports; the program starts it (harness/process/python_process.cc), and says what Python lacks.
install(DIRECTORY python/attnbench DESTINATION share/attnbench/python PATTERN "__pycache__" EXCLUDE)
install(FILES results/schema.json DESTINATION share/attnbench/python/attnbench)

configure_package_config_file(cmake/attnbenchConfig.cmake.in ${PROJECT_BINARY_DIR}/attnbenchConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnbenchConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnbenchConfig.cmake ${PROJECT_BINARY_DIR}/attnbenchConfigVersion.cmake
  cmake/attnbenchPlugin.cmake cmake/plugin_entry.cc.in DESTINATION ${package})

# The manual page and bash's completion, made by the program itself.
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\")
  file(MAKE_DIRECTORY \"\${root}/man/man1\" \"\${root}/bash-completion/completions\")
  execute_process(COMMAND \"$<TARGET_FILE:attnbench>\" help --man
    OUTPUT_FILE \"\${root}/man/man1/attnbench.1\" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"$<TARGET_FILE:attnbench>\" completion bash
    OUTPUT_FILE \"\${root}/bash-completion/completions/attnbench\" COMMAND_ERROR_IS_FATAL ANY)")
