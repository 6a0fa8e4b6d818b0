"""Times attnbench and PyTorch, JAX, onnxruntime and ggml in turns, on the same inputs and threads."""
