"""The inputs under which each op is tested, one file per file of ``gradops.ops``."""
