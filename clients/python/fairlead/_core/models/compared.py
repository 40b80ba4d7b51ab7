from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.run_count import RunCount


T = TypeVar("T", bound="Compared")


@_attrs_define
class Compared:
    """How an ended job compares with others of the last days.

    Attributes:
        days (int): Jobs that ended and were submitted within so many days count. Default: 0.
        suite_elsewhere (RunCount): Jobs that ran and ended by themselves.
        suite_here (RunCount): Jobs that ran and ended by themselves.
        others_here (RunCount): Jobs that ran and ended by themselves.
        words (str): What that says, in one sentence. Default: ''.
    """

    suite_elsewhere: RunCount
    suite_here: RunCount
    others_here: RunCount
    days: int = 0
    words: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        days = self.days

        suite_elsewhere = self.suite_elsewhere.to_dict()

        suite_here = self.suite_here.to_dict()

        others_here = self.others_here.to_dict()

        words = self.words

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "days": days,
                "suite_elsewhere": suite_elsewhere,
                "suite_here": suite_here,
                "others_here": others_here,
                "words": words,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.run_count import RunCount

        d = dict(src_dict)
        days = d.pop("days")

        suite_elsewhere = RunCount.from_dict(d.pop("suite_elsewhere"))

        suite_here = RunCount.from_dict(d.pop("suite_here"))

        others_here = RunCount.from_dict(d.pop("others_here"))

        words = d.pop("words")

        compared = cls(
            days=days,
            suite_elsewhere=suite_elsewhere,
            suite_here=suite_here,
            others_here=others_here,
            words=words,
        )

        compared.additional_properties = d
        return compared

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
