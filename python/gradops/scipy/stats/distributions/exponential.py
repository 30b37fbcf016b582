"""The exponential distribution."""

from __future__ import annotations

from ._family import HazardFamily


class _Expon(HazardFamily):
    """Exponential distribution."""

    def _logpdf(self, z):
        return -z

    def _hazard(self, z):
        return z

    def _hazard_quantile(self, h):
        return h

    def _stats(self):
        return 1.0, 1.0, 2.0, 6.0

    def _entropy(self):
        return 1.0


expon = _Expon("expon")

__all__ = ["expon"]
