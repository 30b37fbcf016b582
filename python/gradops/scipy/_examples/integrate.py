"""Examples of ``gradops.scipy.integrate``."""

ROWS = """
"""
