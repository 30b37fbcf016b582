"""Examples of ``gradops.scipy.sparse``."""

ROWS = """
"""
