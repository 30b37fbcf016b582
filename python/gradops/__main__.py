"""``python -m gradops`` prints what :func:`gradops.show_versions` prints."""

from ._versions import show_versions

show_versions()
