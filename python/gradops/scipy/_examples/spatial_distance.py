"""Examples of ``gradops.scipy.spatial.distance``."""

ROWS = """
"""
