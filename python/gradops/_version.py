"""The version of gradops, which both packages' metadata read."""

__version__ = "0.1.0"
