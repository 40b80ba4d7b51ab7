"""Reads JSON of the server as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")


class Unset:
    """The type of `UNSET`: a field that the server left out. It is false."""

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


@dataclass(kw_only=True)
class Answer:
    """An object of the server. Fields that its class does not have are in `additional_properties`, and in `answer["x"]`."""

    additional_properties: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        """Reads JSON. Raises `ValueError` if a field is missing or of another type."""
        rest = dict(said)
        known = {}
        for one in fields_of(cls):
            if one.key in rest:
                known[one.name] = read(one.kind, rest.pop(one.key))
            elif one.is_required:
                raise ValueError(f"{cls.__name__} without '{one.key}'")
        return cls(additional_properties=rest, **known)

    def to_dict(self) -> dict[str, Any]:
        """The JSON that it was read from."""
        known = {one.key: getattr(self, one.name) for one in fields_of(type(self))}
        said = {key: plain(value) for key, value in known.items() if value is not UNSET}
        return self.additional_properties | said

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties


class Field(NamedTuple):
    """A field of an answer: its name here, its name in JSON, its type, and whether it is always there."""

    name: str
    key: str
    kind: Any
    is_required: bool


_FIELDS: dict[type[Answer], list[Field]] = {}


def fields_of(answer: type[Answer]) -> list[Field]:
    """The fields of a class. A name that Python has itself ends in `_`."""
    if answer not in _FIELDS:
        kinds = get_type_hints(answer)
        _FIELDS[answer] = [
            Field(one.name, one.name.rstrip("_"), kinds[one.name], one.default is MISSING)
            for one in fields(answer)
            if one.name != "additional_properties"
        ]
    return _FIELDS[answer]


def value_of(kind: type[T], said: object) -> T:
    """JSON as a value of a type. Raises `ValueError` if it is of another type."""
    return cast(T, read(kind, said))


def read(kind: Any, said: Any) -> Any:
    """The same for types that are no classes, such as unions."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        for part in parts:
            with suppress(ValueError):
                return read(part, said)
    elif origin is list and isinstance(said, list):
        return [read(parts[0], one) for one in said]
    elif origin is dict and isinstance(said, dict):
        return {key: read(parts[1], one) for key, one in said.items()}
    elif isinstance(said, dict) and isinstance(kind, type) and issubclass(kind, Answer):
        return kind.from_dict(said)
    elif kind is Any or type(said) is kind or (kind is NoneType and said is None):
        return said
    raise ValueError(f"{said!r:.80} instead of {getattr(kind, '__name__', kind)}")


def plain(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, Answer):
        return value.to_dict()
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value
