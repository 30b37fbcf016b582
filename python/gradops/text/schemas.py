"""Named values in JSON: the fields of an answer and the arguments of a tool, from types and descriptions."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Union

from ..errors import ArgumentError, ArgumentTypeError, Code, TypeOf
from .operations import is_one_text

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
_FORMS = Code(
    "a type such as `float`, `list[str]` or `Literal['a', 'b']`, an `Annotated` type, a description, or a JSON schema",
    'the name of a type such as "number", a type of ellmer, or a JSON schema',
)


class Field(NamedTuple):
    """A named value.

    Attributes:
        schema: the JSON schema of the value, without a description.
        description: a text, a text variable, or None.
        required: False if the value may be missing.
    """

    name: str
    schema: Mapping[str, Any]
    description: Any = None
    required: bool = True

    @property
    def kind(self) -> str:
        """The kind of value: ``"string"``, ``"number"``, or another type of JSON."""
        kind = self.schema.get("type", "string" if "enum" in self.schema else "object")
        return "number" if kind == "integer" else kind

    def line(self, description: str | None) -> str:
        """Return the field as a line of a list in a prompt."""
        left_out = "" if self.required else "; may be left out"
        return f"{self.name} ({_words(self.schema)}{left_out}){'' if description is None else f': {description}'}"


def fields_of(argument: str, given) -> list[Field]:
    """Return the fields of a dict from names to their types or descriptions, or of a class with annotations.

    Raises:
        ArgumentTypeError: the dict is no dict, or a value says no type; the error names ``argument``.
        ArgumentError: there are no fields.
    """
    if isinstance(given, type):
        given = typing.get_type_hints(given, include_extras=True)
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ArgumentTypeError(
            f"`{argument}` must be names with types; got {{given}}.",
            argument=argument,
            hint="write {call}",
            given=TypeOf(given),
            call=Code('`{"city": str, "score": float}`', '`list(city = "string", score = "number")`'),
        )
    if not given:
        raise ArgumentError(f"`{argument}` is empty.", argument=argument)
    return [_field(argument, name, form) for name, form in given.items()]


def arguments_of(f) -> list[Field]:
    """Return the arguments of a function as fields; an argument without an annotation is a text."""
    hints = typing.get_type_hints(f, include_extras=True) if hasattr(f, "__annotations__") else {}
    found = []
    for name, parameter in inspect.signature(f).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        field = _field("f", name, hints.get(name, str))
        found.append(field._replace(required=parameter.default is parameter.empty))
    return found


def _field(argument: str, name: str, form) -> Field:
    if is_one_text(form):
        return Field(name, {"type": "string"}, form)
    if isinstance(form, Mapping):
        schema = dict(form)
        description, required = schema.pop("description", None), schema.pop("required", True)
        if "properties" in schema and not isinstance(required, bool):
            schema["required"], required = required, True
        if description is not None and not is_one_text(description):
            raise ArgumentTypeError(
                f"`{argument}`: the description of {name!r} must be a text; got {{given}}.",
                argument=argument,
                given=TypeOf(description),
            )
        return Field(name, schema, description, bool(required))
    description = None
    if typing.get_origin(form) is typing.Annotated:
        form, *notes = typing.get_args(form)
        description = next((note for note in notes if is_one_text(note)), None)
    required = True
    if typing.get_origin(form) in (Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(form) if kind is not type(None)]
        if len(kinds) == 1:
            form, required = kinds[0], False
    return Field(name, _schema(argument, name, form), description, required)


def _schema(argument: str, name: str, kind) -> dict:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list and inner:
        return {"type": "array", "items": _schema(argument, name, inner[0])}
    if origin is dict:
        return {"type": "object"}
    if isinstance(kind, type) and kind in _TYPES:
        return {"type": _TYPES[kind]}
    raise ArgumentTypeError(
        f"`{argument}`: {name!r} must be {{forms}}; got {{given}}.",
        argument=argument,
        forms=_FORMS,
        given=TypeOf(kind),
    )


def object_schema(fields: list[Field], descriptions: Mapping[str, str]) -> dict:
    """Return the JSON schema of an object with these fields."""
    properties = {
        field.name: {
            **field.schema,
            **({"description": descriptions[field.name]} if field.name in descriptions else {}),
        }
        for field in fields
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def mistake(fields: list[Field], values) -> str | None:
    """Return what is wrong with values for these fields, in words; None if nothing is."""
    if not isinstance(values, Mapping):
        return f"it must be an object with {_quoted(field.name for field in fields)}"
    if unknown := [name for name in values if name not in {field.name for field in fields}]:
        return f"it has {_quoted(unknown)}, which is not asked for"
    for field in fields:
        value = values.get(field.name)
        if value is None:
            if field.required:
                return f"`{field.name}` is missing"
        elif not _fits(field.schema, value):
            return f"`{field.name}` must be {_words(field.schema)}; it is {shortest(value)}"
    return None


def parsed_object(answer: str):
    """Return the JSON object in an answer, which may have other text around it; None if there is none."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        return json.loads(answer[start : end + 1])
    except ValueError:
        return None


def shortest(value) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _quoted(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _words(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(shortest, schema["enum"]))
    kind = schema.get("type", "object")
    if kind == "array":
        return f"a list, each {_words(schema['items'])}" if "items" in schema else "a list"
    if kind == "object" and "properties" in schema:
        return "an object with " + ", ".join(f"{name} ({_words(s)})" for name, s in schema["properties"].items())
    return {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}.get(
        kind, "an object"
    )


def _fits(schema: Mapping[str, Any], value) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    kind = schema.get("type")
    if kind == "array":
        return isinstance(value, list) and all(_fits(schema.get("items", {}), item) for item in value)
    if kind == "object":
        within = schema.get("properties", {})
        needed = schema.get("required", list(within))
        return (
            isinstance(value, Mapping)
            and all(name in value for name in needed)
            and all(_fits(within[name], item) for name, item in value.items() if name in within)
        )
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (kind == "number" or value == int(value))
    return isinstance(value, str) if kind == "string" else True
