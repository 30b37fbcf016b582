"""Examples of ``gradops.scipy.linalg``."""

ROWS = """
"""
