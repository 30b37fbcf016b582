"""How a gradient function takes its arguments, read once from its signature.

A gradient function may take the inputs or not, upstream gradients one by one or as one structure, by position or by
name. :class:`Form` selects the variant from the function's parameters and the numbers of inputs and outputs (the table
``_FORMS``), and calls the function accordingly.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter
from types import FunctionType
from typing import NamedTuple

from ..backends import tracing
from ..errors import GradientError

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Arguments:
    """The positional parameters of the function whose gradient is defined, and their defaults."""

    def __init__(self, f: Callable):
        self.f = f
        self.names, self.defaults = _positional(f)

    @property
    def signature(self) -> inspect.Signature | None:
        return _signature(self.f)

    def positional(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of one call, passed by position as far as possible."""
        signature = self.signature
        if signature is None:
            return args, kwargs
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs
        return bound.args, bound.kwargs

    def defaults_after(self, count: int) -> list:
        """The defaults of the arguments after the first ``count``, up to the first argument without a default."""
        return list(itertools.takewhile(lambda value: value is not Parameter.empty, self.defaults[count:]))


def _signature(f: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):
        return None


def _positional_as_read(f: Callable) -> tuple[list[str], list]:
    """The names and defaults of positional parameters from the code object: Dynamo cannot read `inspect.signature`."""
    if not hasattr(f, "__code__") or hasattr(f, "__self__"):
        return _positional_of(_signature(f))
    code, given = f.__code__, f.__defaults__ or ()
    names = list(code.co_varnames[: code.co_argcount])
    return names, [Parameter.empty] * (len(names) - len(given)) + list(given)


@tracing.read_as(_positional_as_read)
def _positional(f: Callable) -> tuple[list[str], list]:
    """The names of a function's positional parameters, and their defaults."""
    return _positional_of(_signature(f))


def _positional_of(signature: inspect.Signature | None) -> tuple[list[str], list]:
    positional = [p for p in signature.parameters.values() if p.kind in _POSITIONAL] if signature else []
    return [p.name for p in positional], [p.default for p in positional]


class Given(NamedTuple):
    """The arguments that are passed to a gradient function."""

    inputs: bool = False
    each: bool = False
    """Each upstream gradient separately, by position."""
    whole: bool = False
    """The upstream gradients of all outputs as one structure, by position."""
    named: bool = False
    """The upstream gradients of all outputs as one structure, by name."""


class Counts(NamedTuple):
    """The numbers that select the form: parameters without a default, inputs, and outputs."""

    parameters: int
    inputs: int
    outputs: int
    after_inputs: bool
    """True if the function takes the inputs in any case, because it is the second of the two functions given."""
    named: bool
    variadic: bool


_FORMS: tuple[tuple[Callable[[Counts], bool], Given], ...] = (
    (lambda n: n.named and (n.after_inputs or n.parameters > 0), Given(inputs=True, named=True)),
    (lambda n: n.variadic and n.after_inputs, Given(inputs=True, each=True)),
    (lambda n: n.variadic and n.named, Given(each=True, named=True)),
    (lambda n: n.variadic, Given(each=True)),
    (lambda n: n.named, Given(named=True)),
    (lambda n: n.parameters == n.outputs and not n.after_inputs, Given(each=True)),
    (lambda n: n.parameters == 1 and not n.after_inputs, Given(whole=True)),
    (lambda n: n.parameters == n.inputs + n.outputs, Given(inputs=True, each=True)),
    (lambda n: n.parameters == n.inputs + 1, Given(inputs=True, whole=True)),
)
"""The forms of a gradient function, in the order in which they are tried."""


class Form:
    """The way a gradient function takes its arguments.

    A parameter with a default keeps it, unless it has the name of an argument of ``f`` and the function takes the
    inputs: then it receives that argument.

    Attributes:
        needed: the positional parameters without a default, except ``upstream``; None if they cannot be determined.
        optional: the positional parameters with a default that are named like an argument of ``f``.
        named: True if there is a parameter ``upstream``; ``first``: True if it comes before an input.
        alone: True if the function takes the upstream gradient of one output by position and nothing else.
        variables: ``"needed"`` or ``"optional"`` if it takes ``variables``, as in ``tf.custom_gradient``; otherwise "".
    """

    __slots__ = (
        "arguments",
        "after_inputs",
        "needed",
        "optional",
        "keywords",
        "named",
        "first",
        "variadic",
        "alone",
        "variables",
        "chosen",
    )

    def __init__(self, gradient: Callable, after_inputs: bool, arguments: Arguments):
        self.arguments = arguments
        self.after_inputs = after_inputs
        self.chosen: dict[tuple, tuple] = {}
        facts = _parameters(gradient)
        self.needed: list[str] | None = None
        self.alone = False
        self.variables = ""
        if facts is None:
            return
        needed, optional, keywords, self.variadic, takes_any = facts
        if "variables" not in arguments.names:  # the first one may be an input or the upstream gradient by this name
            self.variables = "needed" if "variables" in needed[1:] else ""
            self.variables = self.variables or ("optional" if "variables" in [*optional, *keywords] else "")
        if self.variables:
            needed, optional, keywords = ([n for n in ns if n != "variables"] for ns in (needed, optional, keywords))
        self.named = "upstream" in needed or "upstream" in optional or "upstream" in keywords
        if self.variadic and needed[:1] == ["upstream"]:  # `upstream, *others`: by position
            self.named, needed = False, ["dy", *needed[1:]]
        self.first = "upstream" in needed[:-1]
        others = after_inputs or keywords or takes_any or self.variadic or "upstream" in optional
        self.alone = len(needed) == 1 and not others and self.variables != "needed"
        self.keywords = None if takes_any else keywords
        needed, optional = ([n for n in names if n != "upstream"] for names in (needed, optional))
        if not (needed or self.named or self.variadic):  # `upstream=None` under another name
            needed, optional = optional[:1], optional[1:]
        self.needed = needed
        self.optional = [name for name in optional if name in arguments.names]

    def takes_inputs(self, outputs: int) -> bool:
        """True if the gradient function may take the inputs."""
        if self.needed is None or self.after_inputs:
            return self.after_inputs
        return self.named and len(self.needed) > 0 or len(self.needed) > outputs

    def call_with_variables(self, gradient: Callable, upstream, args: tuple, kwargs: dict, variables: list) -> tuple:
        """Call ``gradient`` also with the variables that the function read.

        Returns:
            What it gives as the gradient of the inputs, and a gradient for each variable, or None.

        Raises:
            GradientError: it does not return both.
        """
        result = self._call(functools.partial(gradient, variables=variables), upstream, args, kwargs)
        both = isinstance(result, (tuple, list)) and len(result) == 2 and isinstance(result[1], (tuple, list))
        if not both or len(result[1]) != len(variables):
            raise GradientError(
                f"with `variables`, the gradient function must return a pair: the gradient of the inputs, and a list "
                f"of {len(variables)} gradients, one for each variable.",
                argument="gradient",
                hint="end it with `return gradients, variable_gradients`",
            )
        return result[0], list(result[1])

    def call(self, gradient: Callable, upstream, args: tuple, kwargs: dict):
        """Call ``gradient`` with the upstream gradient, in the structure of the value, and the inputs."""
        if self.variables == "needed":
            return self.call_with_variables(gradient, upstream, args, kwargs, [])[0]
        return self._call(gradient, upstream, args, kwargs)

    def _call(self, gradient: Callable, upstream, args: tuple, kwargs: dict):
        if isinstance(upstream, dict):
            ups = list(upstream.values())
        else:
            ups = list(upstream) if isinstance(upstream, (tuple, list)) else [upstream]
        if self.needed is None:
            return gradient(*args, *ups) if self.after_inputs else gradient(*ups)
        key = (len(args), len(ups), *kwargs)
        chosen = self.chosen.get(key)
        if chosen is None:
            chosen = self._remembered(key)
        given, filled, places, by_position, by_name = chosen
        whole = given.whole or given.each and isinstance(upstream, dict) and len(ups) == 1
        positional = [upstream] if whole else ups if given.each else []
        if given.inputs:
            inputs = [*args, *filled]
            positional = [*(inputs if places is None else [inputs[i] for i in places]), *positional]
        if not (given.named or by_name or by_position):
            return gradient(*positional)
        named = {name: inputs[i] for name, i in by_position.items()} if given.inputs and by_position else {}
        if given.named:
            named["upstream"] = upstream
        for name in by_name:
            named[name] = kwargs[name]
        return gradient(*positional, **named)

    @tracing.read_as(lambda self, key: self._choose(*key))
    def _remembered(self, key: tuple) -> tuple:
        found = self.chosen[key] = self._choose(*key)
        return found

    def _choose(self, inputs: int, outputs: int, *given_by_name: str) -> tuple:
        """The arguments to pass for these numbers of inputs and outputs.

        They are the form, the defaults that complete the inputs, the inputs to pass by position (None for all), those
        to pass by name, and the names of arguments given by name that are passed on.
        """
        assert self.needed is not None
        by_name = self._taken_by_name(given_by_name)
        needed = [name for name in self.needed if name not in by_name]
        filled = self._filled(len(needed), inputs, outputs, bool(given_by_name))
        count = inputs + len(filled)
        by_position = self._taken_by_optional(count, by_name)
        places = [i for i in range(count) if self.variadic or i not in by_position.values()]
        given = self._given(Counts(len(needed), len(places), outputs, self.after_inputs, self.named, self.variadic))
        if not given.inputs:
            by_name = [name for name in by_name if self.keywords is not None and name in self.keywords]
        if given.named and self.first:  # `upstream` comes before an input
            by_position.update(zip(needed, places))
            places = []
        if self.variadic:
            by_position = {}
        return given, filled, None if places == list(range(count)) else places, by_position, by_name

    def _taken_by_name(self, given_by_name: tuple[str, ...]) -> list[str]:
        """The arguments given to ``f`` by name that the gradient function has a parameter for."""
        if self.keywords is None:  # `**`
            return list(given_by_name)
        names = [*(self.needed or ()), *self.optional, *self.keywords]
        return [name for name in given_by_name if name in names]

    def _taken_by_optional(self, count: int, by_name: list[str]) -> dict[str, int]:
        """The positions of inputs, among the first ``count``, that are parameters with a default, by their names.

        Such a parameter receives the input of its name wherever it is placed, so it does not count among the parameters
        that inputs fill in order.
        """
        known = self.arguments.names[:count]
        return {n: known.index(n) for n in self.optional if n in known and n not in by_name}

    def _given(self, counts: Counts) -> Given:
        """The first form that applies.

        Raises:
            GradientError: no form applies, or there is another number of inputs than parameters for them.
        """
        given = next((given for applies, given in _FORMS if applies(counts)), None)
        beside_upstream = given is not None and given.inputs and given.named and not self.variadic
        if given is None or beside_upstream and counts.inputs != counts.parameters:
            raise self._refusal(counts)
        return given

    def _filled(self, needed: int, inputs: int, outputs: int, by_name: bool) -> list:
        """Defaults of ``f`` for inputs that the gradient function requires and the call left out."""
        takes_inputs = self.after_inputs or self.named or needed > outputs
        if not takes_inputs or (not by_name and not self.named and needed == inputs + outputs):
            return []
        return self.arguments.defaults_after(inputs)[: max(0, needed - inputs - (not self.named))]

    def _refusal(self, n: Counts) -> GradientError:
        several = f"the {n.outputs} upstream gradients, or one list of them"
        upstreams = "the upstream gradient" if n.outputs == 1 else several
        inputs = "the input" if n.inputs == 1 else f"the {n.inputs} inputs"
        taken = f"{n.parameters} arguments ({', '.join(self.needed or ())})" if n.parameters else "none"
        if n.named:
            taken = f"{n.parameters} and `upstream`"
        where = f"after {inputs}" if self.after_inputs else f"alone or after {inputs}"
        return GradientError(
            f"the gradient function must take {upstreams}, {where}; it takes {taken}.",
            argument="gradient",
            hint="a parameter with a default keeps its default" if self.optional else None,
        )


def _parameters(function: Callable) -> tuple | None:
    """A function's parameters: positional without a default, with one, keyword-only; and flags for ``*`` and ``**``.

    None if they cannot be determined.
    """
    if type(function) is FunctionType and not function.__dict__:  # R functions have a `__signature__` attribute
        code = function.__code__
        count = code.co_argcount
        optional = len(function.__defaults__ or ())
        names = list(code.co_varnames[: count + code.co_kwonlyargcount])
        positional, keywords = names[:count], names[count:]
        flags = bool(code.co_flags & CO_VARARGS), bool(code.co_flags & CO_VARKEYWORDS)
        return positional[: count - optional], positional[count - optional :], keywords, *flags
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    places = [p for p in parameters if p.kind in _POSITIONAL]
    return (
        [p.name for p in places if p.default is p.empty],
        [p.name for p in places if p.default is not p.empty],
        [p.name for p in parameters if p.kind is p.KEYWORD_ONLY],
        any(p.kind is p.VAR_POSITIONAL for p in parameters),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
    )
