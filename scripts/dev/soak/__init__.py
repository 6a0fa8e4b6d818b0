"""A long run of random sweeps under random interruptions; see scripts/soak."""
