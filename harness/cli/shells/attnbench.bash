# Completion of attnbench in bash: source <(attnbench completion bash)
_attnbench() {
  local line=${COMP_LINE:0:COMP_POINT} words typed broken
  read -ra words <<<"$line" # whole words: bash itself breaks them at '=' and ':'
  [[ $line != *[[:space:]] ]] || words+=("")
  typed=${words[-1]}
  mapfile -t COMPREPLY < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
  broken=${typed%"${typed##*[$COMP_WORDBREAKS]}"} # what bash keeps in front of the word it replaces
  COMPREPLY=("${COMPREPLY[@]#"$broken"}")
  [[ ${COMPREPLY[0]-} != *[=,[] ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _attnbench attnbench
