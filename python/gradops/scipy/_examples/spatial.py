"""Examples of ``gradops.scipy.spatial``."""

ROWS = """
"""
