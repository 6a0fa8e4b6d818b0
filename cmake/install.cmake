# What `cmake --install` gives: the program, the headers and libraries of core, variants and tasks, and the package that
# find_package(attnbench) reads, with attnbench_add_plugin().
include(GNUInstallDirs)
include(cmake/plugin_package.cmake)

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
attn_install_plugin_package(cmake/attnbenchConfig.cmake.in ${CMAKE_INSTALL_INCLUDEDIR}/attnbench
  ${CMAKE_INSTALL_LIBDIR}/cmake/attnbench)

# What draws, reports and exports; the program starts it (harness/process/python_process.cc), and says what Python lacks.
install(DIRECTORY python/attnbench DESTINATION share/attnbench/python PATTERN "__pycache__" EXCLUDE)
install(FILES results/schema.json DESTINATION share/attnbench/python/attnbench)

# The manual page and the completions, made by the program itself.
install(CODE "
  set(program \"$<TARGET_FILE:attnbench>\")
  set(shared \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\")
  set(manuals \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\")")
install(SCRIPT cmake/install_texts.cmake)
