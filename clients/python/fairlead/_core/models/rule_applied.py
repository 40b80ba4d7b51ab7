from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.rule_applied_changes import RuleAppliedChanges


T = TypeVar("T", bound="RuleApplied")


@_attrs_define
class RuleApplied:
    """The rule that a job met, and what it changed.

    Attributes:
        rule (str): The name of the rule. Default: ''.
        changes (RuleAppliedChanges | Unset): The fields that it changed; empty: the job had these values.
    """

    rule: str = ""
    changes: RuleAppliedChanges | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        rule = self.rule

        changes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.changes, Unset):
            changes = self.changes.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rule": rule,
            }
        )
        if changes is not UNSET:
            field_dict["changes"] = changes

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.rule_applied_changes import RuleAppliedChanges

        d = dict(src_dict)
        rule = d.pop("rule")

        _changes = d.pop("changes", UNSET)
        changes: RuleAppliedChanges | Unset
        if isinstance(_changes, Unset):
            changes = UNSET
        else:
            changes = RuleAppliedChanges.from_dict(_changes)

        rule_applied = cls(
            rule=rule,
            changes=changes,
        )

        rule_applied.additional_properties = d
        return rule_applied

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
