from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.edit_view import EditView


T = TypeVar("T", bound="RuleAppliedChanges")


@_attrs_define
class RuleAppliedChanges:
    """The fields that it changed; empty: the job had these values."""

    additional_properties: dict[str, EditView] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.edit_view import EditView

        d = dict(src_dict)
        rule_applied_changes = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = EditView.from_dict(prop_dict)

            additional_properties[prop_name] = additional_property

        rule_applied_changes.additional_properties = additional_properties
        return rule_applied_changes

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> EditView:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: EditView) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
