"""The PyTorch backend. ``kernels`` gathers it; ``tracing`` is for code that PyTorch compiles, and imports no torch."""
