"""Sweeps as Slurm job arrays: shards to batch scripts, the state of a folder of shards, its merged rows."""
