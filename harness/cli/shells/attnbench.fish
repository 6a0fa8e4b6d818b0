# Completion of attnbench in fish: attnbench completion fish | source
function __attnbench
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c attnbench -a '(__attnbench)'
