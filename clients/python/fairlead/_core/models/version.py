from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Version")


@_attrs_define
class Version:
    """How a replica and its store are.

    Attributes:
        name (str): Name of the program: `fairlead`.
        version (str): Its version.
        capabilities (list[str]): What clients may rely on.
        replica (str): The replica's name.
        store (str): The store: `embedded` or `elasticsearch`, with version.
        time_ms (int | None | Unset): Its clock, UTC epoch ms; absent: it does not say.
        files_max (int | None | Unset): How many files it may open; absent: it does not say.
    """

    name: str
    version: str
    capabilities: list[str]
    replica: str
    store: str
    time_ms: int | None | Unset = UNSET
    files_max: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        version = self.version

        capabilities = self.capabilities

        replica = self.replica

        store = self.store

        time_ms: int | None | Unset
        if isinstance(self.time_ms, Unset):
            time_ms = UNSET
        else:
            time_ms = self.time_ms

        files_max: int | None | Unset
        if isinstance(self.files_max, Unset):
            files_max = UNSET
        else:
            files_max = self.files_max

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "version": version,
                "capabilities": capabilities,
                "replica": replica,
                "store": store,
            }
        )
        if time_ms is not UNSET:
            field_dict["time_ms"] = time_ms
        if files_max is not UNSET:
            field_dict["files_max"] = files_max

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        version = d.pop("version")

        capabilities = cast(list[str], d.pop("capabilities"))

        replica = d.pop("replica")

        store = d.pop("store")

        def _parse_time_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_ms = _parse_time_ms(d.pop("time_ms", UNSET))

        def _parse_files_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        files_max = _parse_files_max(d.pop("files_max", UNSET))

        version = cls(
            name=name,
            version=version,
            capabilities=capabilities,
            replica=replica,
            store=store,
            time_ms=time_ms,
            files_max=files_max,
        )

        version.additional_properties = d
        return version

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
