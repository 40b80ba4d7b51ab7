from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="HostVerdict")


@_attrs_define
class HostVerdict:
    """One host, as seen from one job.

    Attributes:
        hostname (str): The host.
        could (bool): Whether it could ever run the job.
        lacks (list[str]): What it lacks or waits for, in words; empty: nothing.
    """

    hostname: str
    could: bool
    lacks: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        hostname = self.hostname

        could = self.could

        lacks = self.lacks

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "hostname": hostname,
                "could": could,
                "lacks": lacks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        hostname = d.pop("hostname")

        could = d.pop("could")

        lacks = cast(list[str], d.pop("lacks"))

        host_verdict = cls(
            hostname=hostname,
            could=could,
            lacks=lacks,
        )

        host_verdict.additional_properties = d
        return host_verdict

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
