"""Gradients checked against finite differences, anomaly mode, the profiler, pictures of graphs."""
