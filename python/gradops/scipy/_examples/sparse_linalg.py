"""Examples of ``gradops.scipy.sparse.linalg``."""

ROWS = """
"""
