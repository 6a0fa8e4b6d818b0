# Runs when attnbench is installed, from cmake/install.cmake: `program` writes its manual page below `manuals` and its completions
# below `shared`, where bash, zsh and fish look for those of installed programs.
set(zsh_folder zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(zsh_folder zsh/vendor-completions) # zsh of Debian and Ubuntu does not read /usr/share/zsh/site-functions
endif()

function(write_text file)
  set(staged "$ENV{DESTDIR}${file}")
  get_filename_component(folder "${staged}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND "${program}" ${ARGN} OUTPUT_FILE "${staged}" COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Made by the program: ${staged}")
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} "${file}" PARENT_SCOPE)
endfunction()

write_text("${manuals}/man1/attnbench.1" help --man)
write_text("${shared}/bash-completion/completions/attnbench" completion bash)
write_text("${shared}/${zsh_folder}/_attnbench" completion zsh)
write_text("${shared}/fish/vendor_completions.d/attnbench.fish" completion fish)
