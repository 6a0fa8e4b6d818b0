# cmake -D SOURCE=… -D TEMPLATE=… -D OUTPUT=… -P commit.cmake: the commit and whether tracked files differ from it. Those of results/ do
# not count: they are what the program writes, so that a second run after the first would be of a changed tree.
# Both are empty without git, without a commit, or when SOURCE lies inside somebody else's repository.
function(git result)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} ${ARGN}
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(text "failed")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(commit "")
set(dirty "")
git(prefix rev-parse --show-prefix) # empty at the top of a work tree
git(head rev-parse --verify HEAD)
if(prefix STREQUAL "" AND NOT head STREQUAL "failed")
  git(changes status --porcelain --untracked-files=no -- . ":(exclude)results")
  set(commit ${head})
  if(changes STREQUAL "")
    set(dirty "false")
  else()
    set(dirty "true")
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
