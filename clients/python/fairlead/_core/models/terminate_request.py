from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TerminateRequest")


@_attrs_define
class TerminateRequest:
    """Stops a job.

    Attributes:
        grace_s (int | None | Unset): How long its script has after SIGTERM, seconds, 0 to 3,600. Default 10.
    """

    grace_s: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        grace_s: int | None | Unset
        if isinstance(self.grace_s, Unset):
            grace_s = UNSET
        else:
            grace_s = self.grace_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if grace_s is not UNSET:
            field_dict["grace_s"] = grace_s

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_grace_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        grace_s = _parse_grace_s(d.pop("grace_s", UNSET))

        terminate_request = cls(
            grace_s=grace_s,
        )

        terminate_request.additional_properties = d
        return terminate_request

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
