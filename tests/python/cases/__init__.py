"""The inputs under which each op is tested, a file for each file of ``gradops.ops``."""
