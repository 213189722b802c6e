"""The kernels that a block compiled, or would on a GPU: machine code as text, and what a profiler sees."""
