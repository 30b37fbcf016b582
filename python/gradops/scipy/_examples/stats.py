"""Examples of ``gradops.scipy.stats``."""

ROWS = """
"""
