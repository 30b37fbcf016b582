"""Examples of ``gradops.scipy.ndimage``."""

ROWS = """
"""
