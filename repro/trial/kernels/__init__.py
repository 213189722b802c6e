"""The kernels that a block compiled: machine code as text, and what a profiler sees."""
