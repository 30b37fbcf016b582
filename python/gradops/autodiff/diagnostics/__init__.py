"""Gradient checks by finite differences, anomaly mode, the profiler, and pictures of graphs."""
