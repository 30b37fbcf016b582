"""Examples of ``gradops.scipy.optimize``."""

ROWS = """
"""
