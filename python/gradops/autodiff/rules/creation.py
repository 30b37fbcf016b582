"""Derivatives: creation. ``full`` and ``full_like`` are composed of ops that have theirs."""
