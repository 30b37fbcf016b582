"""SciPy's filter design, conversions between filter forms and peak finding, for known numbers.

Their results are constants without derivatives.
"""

from __future__ import annotations

from .._tensors import constant

__all__ = """
abcd_normalize argrelextrema argrelmax argrelmin band_stop_obj bessel besselap bilinear bilinear_zpk buttap
butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 check_COLA check_NOLA cont2discrete czt_points
ellip ellipap ellipord find_peaks find_peaks_cwt findfreqs firls firwin firwin2 gammatone get_window iircomb
iirdesign iirfilter iirnotch iirpeak invres invresz kaiser_atten kaiser_beta kaiserord lp2bp lp2bp_zpk lp2bs
lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk max_len_seq minimum_phase normalize peak_prominences peak_widths
place_poles remez residue residuez sos2tf sos2zpk ss2tf ss2zpk tf2sos tf2ss tf2zpk unique_roots unit_impulse
zpk2sos zpk2ss zpk2tf
""".split()
globals().update({name: constant(f"signal.{name}") for name in __all__})
