"""Examples of ``gradops.scipy.interpolate``."""

ROWS = """
"""
