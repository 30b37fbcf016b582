"""``Tool`` and ``ToolCall``: functions that a model may ask to call, and its requests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentTypeError, Code, Item, TypeOf
from .operations import is_one_text
from .schemas import Field, arguments_of, fields_of, shortest


class ToolCall:
    """A model's request to call a tool.

    Args:
        name: the name of the tool.
        arguments: its arguments, by name.
        id: the client's name for the request.

    Attributes:
        request: the request as a text variable, ``weather({"city": "Paris"})``. Feedback on it becomes feedback on the
            inputs of the call, and on the descriptions of the tools. None before :func:`call` has run the tool.
        result: what the tool returned: a text variable or a :class:`File`. Feedback on it goes to the request.

    Examples:
        A function as a model asks for a tool with the answer's first request:

        >>> from gradops import Variable, text
        >>> def model(prompt, system, tools):
        ...     return "It is 12 C." if "12 C" in prompt else text.ToolCall("weather", {"city": "Paris"})
        >>> about = Variable("The weather.", role="description", requires_grad=True)
        >>> weather = text.Tool(lambda city: f"{city}: 12 C", about, name="weather")
        >>> answer = text.call(model, "Is it cold?", tools=[weather], critic=lambda prompt: "name the unit of degrees")
        >>> (asked,) = text.tool_calls(answer)
        >>> print(asked.request.item(), "->", asked.result.item())
        weather({"city": "Paris"}) -> Paris: 12 C
        >>> asked.request.backward("ask for degrees Fahrenheit")
        >>> print(about.grad)
        name the unit of degrees

    See Also:
        :class:`Tool`, :func:`tool_calls`, :func:`call`.
    """

    def __init__(self, name: str, arguments: Mapping[str, Any] | None = None, id: str | None = None):
        if not isinstance(name, str):
            raise ArgumentTypeError("`name` must be the name of a tool; got {x}.", argument="name", x=TypeOf(name))
        if not isinstance(arguments, Mapping | None):
            raise ArgumentTypeError(
                "`arguments` must be values by name; got {x}.", argument="arguments", x=TypeOf(arguments)
            )
        self.name = name
        self.arguments = dict(arguments or {})
        self.id = id
        self.request: Any = None
        self.result: Any = None

    def __str__(self) -> str:
        return f"{self.name}({shortest(self.arguments)})"

    def __repr__(self) -> str:
        return f"ToolCall({self.name!r}, {self.arguments!r})"


class Tool:
    """A function that a model may ask to call, with a description that can learn.

    Args:
        f: the function. It gets its arguments by name, and returns a text, a text variable, a :class:`File`, a number
            (without a gradient) or other values for JSON. It may be ``async``.
        description: what the tool does: a text, or a text variable, which gets feedback; by default the first
            paragraph of the docstring.
        name: the tool's name; by default that of the function.
        arguments: the arguments, as in ``returns`` of :func:`call`; by default those of ``f`` with its annotations.

    Raises:
        ArgumentTypeError: ``f`` is not a function, there is no description or name, or an argument has no type.

    Examples:
        >>> from gradops import Variable, text
        >>> def weather(city: str) -> str:
        ...     return f"{city}: 12 C"
        >>> about = Variable("The weather of a city.", role="description", requires_grad=True)
        >>> tool = text.Tool(weather, about)
        >>> def model(prompt, system, tools):
        ...     return tools["weather"](city="Paris")
        >>> answer = text.call(model, "How cold is it?", tools=[tool], critic=lambda prompt: "say that it is Celsius")
        >>> answer.backward("which unit?")
        >>> print(about.grad)
        say that it is Celsius

    See Also:
        :func:`call`, :class:`ToolCall`.
    """

    def __init__(self, f: Callable, description=None, name: str | None = None, arguments=None):
        if not callable(f):
            raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
        name = getattr(f, "__name__", None) if name is None else name
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentTypeError(
                "`name` must be a word: letters, digits and `_`.",
                argument="name",
                hint="a function without a name needs one: {call}",
                call=Code('`Tool(f, "...", name="weather")`', '`text_tool(f, "...", name = "weather")`'),
            )
        if description is None:
            description = (inspect.getdoc(f) or "").split("\n\n")[0] or None
        if not is_one_text(description):
            raise ArgumentTypeError(
                "`description` must be one text; got {x}.",
                argument="description",
                hint="say what the tool does, in words for the model",
                x=TypeOf(description),
            )
        self.f = f
        self.name = name
        self.description = description
        self.arguments: list[Field] = (
            arguments_of(f) if arguments is None else fields_of("arguments", arguments) if arguments else []
        )

    def __call__(self, **arguments):
        """Return ``f`` of the arguments."""
        return self.f(**arguments)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, {[field.name for field in self.arguments]})"


def listed_tools(tools) -> list[Tool]:
    """Return a tool or function, or several, as a list of tools.

    Raises:
        ArgumentTypeError: one of them is no tool and no function, or two have one name.
    """
    given = list(tools) if isinstance(tools, (list, tuple)) else [tools]
    found: list[Tool] = []
    for i, tool in enumerate(given):
        if not isinstance(tool, Tool):
            if not callable(tool):
                raise ArgumentTypeError(
                    "{item} must be a tool; got {tool}.",
                    argument="tools",
                    hint="make it with {call}",
                    item=Item("tools", i),
                    tool=TypeOf(tool),
                    call=Code('`Tool(f, "what it does")`', '`text_tool(f, "what it does")`'),
                )
            tool = Tool(tool)
        if any(tool.name == other.name for other in found):
            raise ArgumentTypeError(f"`tools` has two tools of the name `{tool.name}`.", argument="tools")
        found.append(tool)
    return found
