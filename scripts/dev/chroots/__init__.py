"""Fresh Debians in folders, in which attnbench is installed as README says: the Containerfile's steps and the
clone (`python -m dev.chroots --help`), and the wheel (scripts/dev/wheel). It needs root and debootstrap."""
