"""Examples of ``gradops.scipy.signal``."""

ROWS = """
"""
