#compdef attnbench
# Completion of attnbench in zsh: source <(attnbench completion zsh)
_attnbench() {
  local -a found
  found=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n ${found[1]} ]]; then
    compadd -S '' -- "${found[@]}"
  else
    _files
  fi
}
compdef _attnbench attnbench
