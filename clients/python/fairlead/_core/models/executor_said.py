from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ExecutorSaid")


@_attrs_define
class ExecutorSaid:
    """An executor of a host: a program that its agent runs jobs in.

    Attributes:
        name (str): `process`, `podman`, `docker` or `qemu`; at most 128 bytes.
        version (str | Unset): As it says, at most 128 bytes. Empty: it has none.
        problem (str | Unset): Why it cannot be used, for people, at most 512 bytes. Empty: it can.
    """

    name: str
    version: str | Unset = UNSET
    problem: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        version = self.version

        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        version = d.pop("version", UNSET)

        problem = d.pop("problem", UNSET)

        executor_said = cls(
            name=name,
            version=version,
            problem=problem,
        )

        executor_said.additional_properties = d
        return executor_said

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
