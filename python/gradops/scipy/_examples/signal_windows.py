"""Examples of ``gradops.scipy.signal.windows``."""

ROWS = """
"""
