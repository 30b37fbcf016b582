"""``gradops.scipy.fft`` against SciPy."""

import functools

import numpy as np
import pytest
import scipy.fft
from scipy_checks import agree, complex_of, each_program, in_programs, refused

import gradops
from gradops import ops
from gradops.scipy import fft

rng = np.random.default_rng(36)
LINE = rng.normal(size=6)
PLANE = rng.normal(size=(3, 4))
SPECTRUM = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))

CASES = [
    *[(name, PLANE, {}) for name in ("fft", "ifft", "rfft", "ihfft", "fft2", "ifft2", "rfft2", "ihfft2")],
    *[(name, PLANE, {"s": (4, 3), "norm": "ortho"}) for name in ("fftn", "ifftn", "rfftn", "ihfftn")],
    *[(name, SPECTRUM, {}) for name in ("irfft", "hfft", "irfft2", "hfft2")],
    *[(name, SPECTRUM, {"s": (4, 5), "norm": "forward"}) for name in ("irfftn", "hfftn")],
    ("fft", PLANE, {"n": 2, "axis": 0, "norm": "forward"}),
    ("ifft", SPECTRUM, {"n": 5, "axis": 0, "norm": "ortho"}),
    ("ifft", SPECTRUM, {"norm": "forward"}),
    ("rfft", PLANE, {"n": 5, "axis": 0, "norm": "ortho"}),
    ("irfft", SPECTRUM, {"n": 3, "norm": "ortho"}),
    ("hfft", SPECTRUM, {"n": 7, "norm": "ortho"}),
    ("ihfft", LINE, {"norm": "forward"}),
    ("fftn", SPECTRUM, {"axes": (0,)}),
    ("fftn", PLANE, {"axes": (), "s": None}),
    ("fft2", SPECTRUM, {"axes": (1, 0), "s": (2, 2)}),
    ("fftshift", PLANE, {}),
    ("fftshift", SPECTRUM, {"axes": 0}),
    ("ifftshift", PLANE, {"axes": (0, 1)}),
    *[(name, LINE, {"type": type}) for name in ("dct", "dst", "idct", "idst") for type in (1, 2, 3, 4)],
    *[("dct", LINE, {"type": type, "norm": "ortho"}) for type in (1, 2, 3, 4)],
    *[("idst", LINE, {"type": type, "norm": "ortho"}) for type in (1, 2, 3, 4)],
    ("dct", PLANE, {"norm": "forward", "orthogonalize": True, "axis": 0, "n": 5}),
    ("idct", PLANE, {"norm": "ortho", "orthogonalize": False, "type": 3}),
    ("dst", SPECTRUM, {"n": 3}),
    ("dct", SPECTRUM, {"n": 3, "norm": "ortho"}),
    *[(name, PLANE, {"s": (3, 3), "norm": "ortho"}) for name in ("dctn", "idctn", "dstn", "idstn")],
    ("dctn", PLANE, {"axes": 1, "type": 3}),
    ("fht", LINE, {"dln": 0.1, "mu": 0.5}),
    ("fht", LINE, {"dln": 0.1, "mu": 0.5, "offset": 0.2, "bias": 0.3}),
    ("ifht", LINE, {"dln": 0.1, "mu": 0.5}),
    ("ifht", LINE[:5], {"dln": 0.1, "mu": 0.5, "offset": 0.2, "bias": 0.3}),
]
CONSTANT = {
    "fftfreq": (8, 0.5),
    "rfftfreq": (9,),
    "next_fast_len": (31,),
    "prev_fast_len": (31,),
    "fhtoffset": (0.1, 0.5),
}


each_case = pytest.mark.parametrize(("name", "x", "settings"), CASES, ids=lambda v: v if isinstance(v, str) else "")


def compared(name, x, settings, **how):
    agree(
        functools.partial(getattr(fft, name), **settings),
        functools.partial(getattr(scipy.fft, name), **settings),
        x,
        second=False,  # linear
        **how,
    )


@each_case
def test_agrees_with_scipy(name, x, settings):
    if name in ("rfft", "hfftn", "dctn", "ifht", "fftshift"):
        compared(name, x, settings)
    else:
        compared(name, x, settings, over=("numpy", "torch"), compiled=False)


@pytest.mark.long
@each_case
def test_agrees_with_scipy_on_all_backends(name, x, settings):
    compared(name, x, settings)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants(name):
    np.testing.assert_array_equal(getattr(fft, name)(*CONSTANT[name]), getattr(scipy.fft, name)(*CONSTANT[name]))


def test_each_name_has_a_case():
    assert {name for name, *_ in CASES} | set(CONSTANT) == set(fft.__all__)


@pytest.mark.parametrize("name", ["irfft", "hfft", "dst", "fft"])
def test_gradient_with_respect_to_a_complex_tensor(name):
    f = getattr(fft, name)

    def power(re, im):
        return ops.real(f(complex_of(re, im)))

    def reference(re, im):
        return getattr(scipy.fft, name)(re + 1j * im).real

    agree(power, reference, SPECTRUM.real, SPECTRUM.imag, second=False)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_accuracy_of_the_composed_transforms(name, type):
    torch = pytest.importorskip("torch")
    x = rng.normal(size=1000)
    want = getattr(scipy.fft, name)(x, type)
    found = getattr(fft, name)(torch.from_numpy(x), type).numpy()
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-14 * np.abs(want).max())


def test_single_and_half_precision():
    for name, dtype, want in (
        ("dct", "float16", "float32"),
        ("dst", "float32", "float32"),
        ("fft", "float32", "complex64"),
    ):
        assert getattr(fft, name)(np.ones(4, dtype)).dtype == want
    assert fft.rfft([1, 2, 3]).dtype == "complex128"


def test_second_derivative():
    found = gradops.functional.hessian(lambda x: ops.sum(fft.dct(x) ** 2), LINE)
    matrix = scipy.fft.dct(np.eye(6), axis=0)
    np.testing.assert_allclose(found, 2 * matrix.T @ matrix, atol=1e-12)


@pytest.mark.long
@each_program(lambda x: ops.sum(fft.dct(x, 3) ** 2))
def test_programs_of_libraries(compiled):
    def f(x):
        return ops.sum(fft.idst(fft.dct(x, 3), 1) * fft.irfft(fft.rfft(x, 5) ** 2, 6))

    in_programs(f, LINE, compiled=compiled, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: fft.fft(LINE, norm="orthonormal"), "norm"),
        (lambda: fft.fft(LINE, 0), "n"),
        (lambda: fft.fft(LINE, axis=1), "axis"),
        (lambda: fft.fftn(PLANE, s="ab"), "s"),
        (lambda: fft.dct(LINE, n=2.5), "n"),
        (lambda: fft.dct("a"), "x"),
        (lambda: fft.fftfreq(), "n"),
        (lambda: fft.fftfreq(3, e=1), "e"),
        (lambda: fft.fftfreq("a"), "n"),
        (lambda: fft.fhtoffset(gradops.Variable(0.1, requires_grad=True), 0.5), "dln"),
        (lambda: fft.rfft(SPECTRUM), "x"),
        (lambda: fft.fftn(PLANE, axes=(0, 0)), "axes"),
        (lambda: fft.fftn(PLANE, s=(2,), axes=(0, 1)), "s"),
        (lambda: fft.dct(LINE, 5), "type"),
        (lambda: fft.dct(LINE[:1], 1), "x"),
        (lambda: fft.fht(LINE, gradops.Variable(0.1, requires_grad=True), 0.5), "dln"),
    ],
)
def test_errors_name_the_argument(call, argument):
    refused(call, argument)


@pytest.mark.filterwarnings("ignore:singular")
@pytest.mark.parametrize(("mu", "bias"), [(-4.0, 1.0), (-2.5, 0.5), (-3.5, 0.5)])
def test_singular_hankel_transforms(mu, bias):
    x = np.random.default_rng(0).normal(size=16)
    for name in ("fht", "ifht"):
        found, want = (getattr(module, name)(x, 0.3, mu, bias=bias) for module in (fft, scipy.fft))
        np.testing.assert_allclose(found, want, rtol=1e-10)
