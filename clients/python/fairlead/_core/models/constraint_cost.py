from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ConstraintCost")


@_attrs_define
class ConstraintCost:
    """A constraint of a job, and how many more known hosts there would be without it alone.

    Attributes:
        constraint (str): As a job file says it, such as `tags: [gpu]`. Default: ''.
        more_able (int): Hosts that could run the job only without it. Default: 0.
        more_ready (int): Hosts that could run the job now only without it. Default: 0.
        words (str): The same in one sentence. Default: ''.
    """

    constraint: str = ""
    more_able: int = 0
    more_ready: int = 0
    words: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        constraint = self.constraint

        more_able = self.more_able

        more_ready = self.more_ready

        words = self.words

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "constraint": constraint,
                "more_able": more_able,
                "more_ready": more_ready,
                "words": words,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        constraint = d.pop("constraint")

        more_able = d.pop("more_able")

        more_ready = d.pop("more_ready")

        words = d.pop("words")

        constraint_cost = cls(
            constraint=constraint,
            more_able=more_able,
            more_ready=more_ready,
            words=words,
        )

        constraint_cost.additional_properties = d
        return constraint_cost

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
