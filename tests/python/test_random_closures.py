"""Random functions that read changing state: compiled functions see the same changes as uncompiled ones."""

from __future__ import annotations

import random
import sys
import textwrap
import types

import numpy as np
import pytest
from seeds import seeds

import gradops
from gradops import to_backend
from gradops.jit import jit

X = np.array([0.5, 1.0, 1.5])

HEAD = """
import array, collections, contextlib, contextvars, dataclasses, functools, importlib, operator, os, sys, types, weakref
import numpy as np
import scipy.sparse
from gradops import Variable, autodiff, custom_gradient, ops
"""

THINGS: dict[str, tuple[str, str, list[str]]] = {
    # How it is made; how it is read, as a number or an array of three; how it changes. `~` stands for its own number,
    # `#` for a new one.
    "global": ("g~ = #", "g~", ["g~ = #"]),
    "array": ("a~ = np.full(3, #)", "a~", ["a~[1] = #", "a~ = np.full(3, #)", "a~ *= 1.5", "a~.fill(#)"]),
    "number of an array": ("n~ = np.full(3, #)", "float(n~[0])", ["n~[0] = #"]),
    "view": ("b~ = np.full(1, #); v~ = np.broadcast_to(b~, 3)", "v~", ["b~[0] = #"]),
    "view of rows": (
        "m~ = np.full((2, 3), #); r~ = m~[:]; r~.flags.writeable = False; r~ = r~[1]",
        "r~",
        ["m~[1, 2] = #", "m~ += 1.0"],
    ),
    "transposed": ("t~ = np.full((3, 2), #); s~ = t~.T", "s~[1]", ["t~[:, 1] = #"]),
    "masked": ("k~ = np.ma.array([1.0, #, 2.0], mask=[0, 0, 1])", "k~.sum()", ["k~.mask[0] ^= True", "k~[1] = #"]),
    "structured": ("z~ = np.zeros(3, [('u', 'f8')]); z~['u'] = #", "z~['u']", ["z~['u'][0] = #"]),
    "objects": ("o~ = np.array([#, [#]], object)", "o~[0] * o~[1][0]", ["o~[0] = #", "o~[1][0] = #"]),
    "list": ("l~ = [#, [#]]", "l~[0] + l~[1][0]", ["l~[0] = #", "l~[1][0] = #", "l~[1].insert(0, #)"]),
    "tuple": ("u~ = (#, np.full(3, #))", "u~[0] + u~[1]", ["u~ = (#, u~[1])", "u~[1][0] = #"]),
    "dict": ("d~ = {'k': #, 'm': {'k': #}}", "d~['k'] + d~['m']['k']", ["d~['k'] = #", "d~['m']['k'] = #"]),
    "dict's get": ("e~ = {'k': #}; eg~ = e~.get", "eg~('k') + eg~('m', 1.0)", ["e~['k'] = #", "e~['m'] = #"]),
    "dict's values": ("f~ = {'k': #}; fv~ = f~.values()", "sum(fv~)", ["f~['k'] = #", "f~['m'] = #"]),
    "proxy": ("h~ = {'k': #}; hp~ = types.MappingProxyType(h~)", "hp~['k']", ["h~['k'] = #"]),
    "defaultdict": ("j~ = collections.defaultdict(lambda: 2.0, k=#)", "j~['k']", ["j~['k'] = #"]),
    "UserDict": ("q~ = collections.UserDict(k=#)", "q~['k']", ["q~['k'] = #"]),
    "deque": ("w~ = collections.deque([#, #])", "sum(w~)", ["w~.append(#)", "w~[0] = #"]),
    "set": ("x~ = {1.0, #}", "sum(sorted(x~))", ["x~.add(#)"]),
    "bytes": ("y~ = array.array('d', [#, #])", "y~[0]", ["y~[0] = #", "y~.append(#)"]),
    "sparse": ("aa~ = scipy.sparse.csr_matrix(np.eye(3) * #)", "aa~ @ np.ones(3)", ["aa~.data[1] = #"]),
    "attribute": (
        "class A~:\n    k = 1.0\n    w = np.ones(3)\nab~ = A~(); ab~.k = #",
        "ab~.k * ab~.w",
        ["ab~.k = #", "ab~.w = np.full(3, #)", "A~.w = np.full(3, #)"],
    ),
    "class attribute": (
        "class B~:\n    k = #\nclass C~(B~):\n    pass\nac~ = C~()",
        "ac~.k + C~.k",
        ["B~.k = #", "C~.k = #", "ac~.k = #"],
    ),
    "method": (
        "class D~:\n    def __init__(self): self.k = #\n    def value(self): return self.k * self.scale\n"
        "    scale = #\n"
        "ad~ = D~(); am~ = ad~.value",
        "ad~.value() + am~()",
        ["ad~.k = #", "ad~.scale = #", "D~.scale = #", "D~.value = lambda self: self.k - #"],
    ),
    "property": (
        "class E~:\n    @property\n    def k(self): return self._k * 2\nae~ = E~(); ae~._k = #",
        "ae~.k",
        ["ae~._k = #", "E~.k = property(lambda self: #)"],
    ),
    "slots": ("class F~:\n    __slots__ = ('k',)\naf~ = F~(); af~.k = #", "af~.k", ["af~.k = #"]),
    "namespace": ("ag~ = types.SimpleNamespace(k=#)", "ag~.k", ["ag~.k = #", "ag~ = types.SimpleNamespace(k=#)"]),
    "vars": ("ah~ = types.SimpleNamespace(k=#)", "sum(vars(ah~).values())", ["ah~.k = #", "ah~.m = #"]),
    "computed name": ("ai~ = types.SimpleNamespace(k1=#)", "getattr(ai~, f'k{1}')", ["ai~.k1 = #"]),
    "absent name": ("aj~ = types.SimpleNamespace(k=#)", "getattr(aj~, 'm', 1.0)", ["aj~.m = #"]),
    "absent attribute": (
        "class P~: pass\nal~ = P~()\ndef aq~():\n    try:\n        return al~.k\n    except AttributeError:\n"
        "        return 1.0",
        "aq~()",
        ["al~.k = #", "P~.k = #"],
    ),
    "absent global": (
        "def as~():\n    try:\n        return at~\n    except NameError:\n        return 1.0", "as~()", ["at~ = #"]
    ),
    "compared": (
        "class S~:\n    k = 1.0\n    def __eq__(self, other): return self.k > other\nau~ = S~(); au~.k = #",
        "(2.0 if au~ == 2.0 else 1.0)",
        ["au~.k = 4 - #", "au~.k = #"],
    ),
    "attrgetter": ("ak~ = types.SimpleNamespace(k=#); al~ = operator.attrgetter('k')", "al~(ak~)", ["ak~.k = #"]),
    "special methods": (
        "class G~:\n    def __getattr__(self, name): return self[name]\n"
        "    def __getitem__(self, name): return T~[name]\n"
        "    def __len__(self): return len(T~)\n    def __eq__(self, other): return T~['k'] > other\n"
        "    def __float__(self): return float(T~['k'])\n    def __hash__(self): return 1\n"
        "T~ = {'k': #}; an~ = G~()",
        "an~.k + an~['k'] + len(an~) + float(an~) + (1.0 if an~ == 1.0 else 2.0)",
        ["T~['k'] = #", "T~['m'] = #"],
    ),
    "callable": (
        "class H~:\n    def __init__(self, k): self.k = k\n    def __call__(self, y): return y * self.k\nao~ = H~(#)",
        "ao~(2.0)",
        ["ao~.k = #", "ao~ = H~(#)"],
    ),
    "dict of one's own": (
        "class I~(dict):\n    scale = #\n    def value(self): return self['k'] * self.scale\nap~ = I~(k=#)",
        "ap~.value()",
        ["ap~['k'] = #", "I~.scale = #"],
    ),
    "named tuple": (
        "class J~(collections.namedtuple('J~', 'k w')):\n    def value(self): return self.k * self.w * S~\n"
        "S~ = #; aq~ = J~(#, np.full(3, #))",
        "aq~.value()",
        ["aq~.w[0] = #", "S~ = #", "aq~ = aq~._replace(k=#)"],
    ),
    "dataclass": (
        "@dataclasses.dataclass\nclass K~:\n    k: float = 1.0\n    def __post_init__(self): self.k = self.k * U~\n"
        "U~ = #; ar~ = K~()",
        "ar~.k + K~().k + dataclasses.replace(ar~, k=2.0).k",
        ["U~ = #", "ar~.k = #"],
    ),
    "made": ("class L~:\n    def __init__(self): self.k = V~\nV~ = #", "L~().k", ["V~ = #"]),
    "defaults": ("def au~(y, k=#, *, m=#): return y * k + m", "au~(2.0)", [
        "au~.__defaults__ = (#,)", "au~.__kwdefaults__ = {'m': #}", "au~.__kwdefaults__['m'] = #",
        "au~.__code__ = (lambda y, k, *, m: y + k + m + #).__code__",
        "def au~(y, k=#, *, m=#): return y - k * m",
    ]),  # fmt: skip
    "closure": (
        "def make~():\n    k = #\n    def get(): return k\n    def put(new):\n        nonlocal k\n        k = new\n"
        "    return get, put\nget~, put~ = make~()",
        "get~()",
        ["put~(#)"],
    ),
    "partial": ("av~ = [#]; aw~ = functools.partial(lambda k, y: k[0] * y, av~)", "aw~(2.0)", ["av~[0] = #"]),
    "functions in a dict": (
        "ax~ = {'f': lambda y: y * W~}; W~ = #",
        "ax~['f'](2.0)", ["W~ = #", "ax~['f'] = lambda y: y + #"]
    ),
    "decorated": (
        "def ay~(f):\n    @functools.wraps(f)\n    def inner(y): return f(y) * Y~\n    return inner\n"
        "Y~ = #; Z~ = #\n@ay~\ndef az~(y): return y + Z~",
        "az~(1.0)",
        ["Y~ = #", "Z~ = #"],
    ),
    "context manager": (
        "ba~ = [#]\n@contextlib.contextmanager\ndef bb~(): yield ba~[0]\ndef bc~():\n    with bb~() as k: return k",
        "bc~()",
        ["ba~[0] = #"],
    ),
    "cached": (
        "class N~:\n    @functools.cached_property\n    def k(self): return X~\nX~ = #; bd~ = N~()",
        "bd~.k",
        ["bd~.k = #", "del bd~.k; X~ = #"],
    ),
    "partialmethod": (
        "P~ = [#]\nclass O~:\n    def add(self, k): return self.m + k[0]\n    more = functools.partialmethod(add, P~)\n"
        "be~ = O~(); be~.m = #",
        "be~.more()",
        ["P~[0] = #", "be~.m = #"],
    ),
    "static and class methods": (
        "class Q~:\n    k = #\n    @staticmethod\n    def s(): return R~\n    @classmethod\n"
        "    def c(cls): return cls.k\nR~ = #",
        "Q~.s() + Q~().c()",
        ["R~ = #", "Q~.k = #"],
    ),
    "module": ("bf~ = types.ModuleType('m'); bf~.k = #; bf~.f = lambda: bf~.k", "bf~.k + bf~.f()", ["bf~.k = #"]),
    "import": (
        "sys.modules['closures_~'] = bg~ = types.ModuleType('closures_~'); bg~.k = #\n"
        "def bh~():\n    import closures_~\n    from closures_~ import k\n    return k + closures_~.k",
        "bh~()",
        ["bg~.k = #"],
    ),
    "import by name": (
        "sys.modules['closures_by_name_~'] = bi~ = types.ModuleType('m'); bi~.k = #",
        "importlib.import_module('closures_by_name_~').k",
        ["bi~.k = #"],
    ),
    "globals()": ("bj~ = #", "globals()['bj~']", ["bj~ = #"]),
    "context": ("bk~ = contextvars.ContextVar('bk~', default=#)", "bk~.get()", ["bk~.set(#)"]),
    "environment": (
        "os.environ['CLOSURES~'] = '#'",
        "float(os.environ['CLOSURES~'])", ["os.environ['CLOSURES~'] = '#'"]
    ),
    "weak reference": ("class Bl~: pass\nbl~ = Bl~(); bl~.k = #; bm~ = weakref.ref(bl~)", "bm~().k", ["bl~.k = #"]),
    "variable": ("bn~ = Variable(np.full(3, #))", "bn~", ["bn~.data = np.full(3, #)", "bn~.data[0] = #"]),
    "rule": (
        "bo~ = [#]\n@custom_gradient\ndef bp~(y): return y * 1.0, lambda u: u * bo~[0]",
        "bp~(x)",
        ["bo~[0] = #"],
    ),
    "rule beside": (
        "bq~ = [#]; br~ = custom_gradient(lambda y: y * 1.0, lambda y, u: u * bq~[0])",
        "br~(x)",
        ["bq~[0] = #"],
    ),
    "function with a backward pass": (
        "class Bs~(autodiff.Function):\n    @staticmethod\n    def forward(ctx, y): return y * bt~\n"
        "    @staticmethod\n    def backward(ctx, u): return u * bt~ * 2\nbt~ = #",
        "Bs~.apply(x)",
        ["bt~ = #"],
    ),
}  # fmt: skip
WAYS = (
    "{0}",
    "read~(x)",
    "(lambda: {0})()",
    "(lambda x, y=2.0: {0} * y)(x)",
    "sum([{0} for _ in range(2)])",
    "functools.reduce(operator.add, map(lambda _: {0}, range(2)))",
    "reader~.read(x)",
    "Reader~().read(x)",
    "functools.partial(read~, x)()",
    "next(y for y in [1.0] if True) * read~(x)",
    "readers~['r'][0](x)",
)
"""How a function reads an object `{0}`: directly, or through functions it calls."""
READING = """
def read~(x):
    return {0}

class Reader~:
    def read(self, x):
        return {0}

reader~ = Reader~()
readers~ = {{"r": [read~]}}
"""


class Closing:
    """A function that reads a few objects, built from a seed, in a module of its own."""

    def __init__(self, seed: int, things: dict = THINGS, ways: tuple = WAYS):
        self.rng = random.Random(seed)
        self.module = types.ModuleType(f"closing_{seed}")
        self.kinds = self.rng.sample(list(things), self.rng.randint(1, min(3, len(things))))
        self.lines: list[str] = [HEAD]
        self.changes: list[str] = []
        terms = []
        for i, kind in enumerate(self.kinds):
            made, read, changes = (self._own(text, i) for text in things[kind])
            terms.append(self._own(self.rng.choice(ways).replace("{0}", read), i))
            self.lines += [made, self._own(READING.format(read), i)]
            self.changes += changes
        self.lines.append(f"def f(x):\n    return ops.sum(x * ({' + '.join(terms)}) + x * x)")
        sys.modules[self.module.__name__] = self.module
        self.run("\n".join(self.lines))

    def _own(self, text, i: int):
        return [self._own(t, i) for t in text] if isinstance(text, list) else text.replace("~", str(i))

    def run(self, text: str) -> None:
        while "#" in text:
            text = text.replace("#", f"{self.rng.uniform(1, 3):.3f}", 1)
        self.lines.append(text)
        exec(textwrap.dedent(text), vars(self.module))

    def change(self) -> str:
        """Change some object, if any can change, and return the code of the change."""
        if self.changes:
            self.run(self.rng.choice(self.changes))
        return self.lines[-1]


def check(program: Closing, backend: str = "numpy") -> None:
    f = program.module.f
    derived = program.rng.choice([lambda f: f, gradops.value_and_grad, lambda f: lambda x: (f(x), gradops.grad(f)(x))])
    plain, compiled, x = derived(f), jit(derived(f)), to_backend(X, backend)
    try:
        for _ in range(5):
            for _ in range(2):
                got, want = compiled(x), plain(x)
                for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
                    np.testing.assert_allclose(values(a), values(b), rtol=1e-10)
            before = compiled.captured
            compiled(x)
            assert compiled.captured is before, "traced again without a change"
            program.change()
    except Exception as error:
        raise AssertionError(
            f"{backend}, {program.module.__name__}: {program.kinds}\n" + "\n".join(program.lines[1:])
        ) from error
    finally:
        for name in [n for n in sys.modules if n.startswith(("closing_", "closures_"))]:
            del sys.modules[name]


def values(x):
    return np.asarray(getattr(x, "data", x) if isinstance(x, gradops.Variable) else x)


@pytest.mark.parametrize("seed", range(25))
def test_random_closures_are_followed(seed):
    check(Closing(seed))


@pytest.mark.parametrize("kind", THINGS)
def test_each_kind_of_captured_value(kind):
    """Applies each change, read in alternating ways."""
    made, read, changes = THINGS[kind]
    for i, change in enumerate(changes):
        check(Closing(i, {kind: (made, read, [change])}, (WAYS[(i + len(kind)) % len(WAYS)],)))


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1000))
def test_many_closures(seed):
    check(Closing(seed))
