"""Times attnbench and PyTorch, JAX and onnxruntime in turns, on the same inputs and threads."""
