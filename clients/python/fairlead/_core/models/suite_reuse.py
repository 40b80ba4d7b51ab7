from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SuiteReuse")


@_attrs_define
class SuiteReuse:
    """What holds for the jobs of a suite.

    Attributes:
        suite (str): The suite: a name, with `*` and `?`.
        within (str): How old a result may be, such as `14d`, at most `366d`.
    """

    suite: str
    within: str

    def to_dict(self) -> dict[str, Any]:
        suite = self.suite

        within = self.within

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "suite": suite,
                "within": within,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        suite = d.pop("suite")

        within = d.pop("within")

        suite_reuse = cls(
            suite=suite,
            within=within,
        )

        return suite_reuse
