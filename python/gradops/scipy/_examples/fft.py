"""Examples of ``gradops.scipy.fft``."""

ROWS = """
"""
