"""Backends defined by the tests, each on a namespace of the array API, without derivatives of their own.

array-api-strict implements the standard and nothing else; dask.array is a widely used library whose arrays are graphs
of pending computations.
"""

from __future__ import annotations

from gradops import backends, extend


def strict() -> backends.Backend:
    import array_api_strict as xp

    return extend.backend("strict", xp, type(xp.asarray(0.0)))


def dask() -> backends.Backend:
    import array_api_compat.dask.array as xp
    import dask.array
    import scipy.special

    return extend.backend("dask.array", xp, dask.array.Array, special=scipy.special)


FIFTH = {"strict": strict, "dask.array": dask}

_NO_FUNCTION = """column_sums conv_to_inputs conv_to_kernel conv_to_output ctc_beams einsum expm gcd lcm ldexp lu_factor
view window_columns window_max window_spread window_sum"""
LACKING = {
    "strict": set(f"{_NO_FUNCTION} erf erfc erfinv i0 i1 lgamma normal_cdf polygamma".split()),
    "dask.array": set(f"{_NO_FUNCTION} det eig eigh slogdet".split()),
}
"""Required kernels that the standard has no function for, or that Dask does not implement."""
