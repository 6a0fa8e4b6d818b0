"""`attnbench coverage`: variants and settings that no row has, what each would cost, and which tell most."""
