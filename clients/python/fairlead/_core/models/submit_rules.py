from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.submit_rule import SubmitRule


T = TypeVar("T", bound="SubmitRules")


@_attrs_define
class SubmitRules:
    """All submit rules, in their order: the first one that a job meets changes it.

    Attributes:
        rules (list[SubmitRule]): At most 100.
    """

    rules: list[SubmitRule]

    def to_dict(self) -> dict[str, Any]:
        rules = []
        for rules_item_data in self.rules:
            rules_item = rules_item_data.to_dict()
            rules.append(rules_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "rules": rules,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.submit_rule import SubmitRule

        d = dict(src_dict)
        rules = []
        _rules = d.pop("rules")
        for rules_item_data in _rules:
            rules_item = SubmitRule.from_dict(rules_item_data)

            rules.append(rules_item)

        submit_rules = cls(
            rules=rules,
        )

        return submit_rules
