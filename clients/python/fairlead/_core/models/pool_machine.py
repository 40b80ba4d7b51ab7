from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PoolMachine")


@_attrs_define
class PoolMachine:
    """What the machines of a pool are: jobs that such a machine could run may wait for one.

    Attributes:
        kinds (list[str]): Which jobs they run: `hw` alone, or `vm`, `dc` or both.
        arch (str): Architecture, such as `x86_64`.
        memory_mb (int): Memory that they offer to jobs, MB.
        cpus (int | None | Unset): CPUs that they offer to jobs. Absent: they are not checked.
        tags (list[str] | Unset): Tags that they have.
        devices (list[str] | Unset): Devices that they have.
    """

    kinds: list[str]
    arch: str
    memory_mb: int
    cpus: int | None | Unset = UNSET
    tags: list[str] | Unset = UNSET
    devices: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kinds = self.kinds

        arch = self.arch

        memory_mb = self.memory_mb

        cpus: int | None | Unset
        if isinstance(self.cpus, Unset):
            cpus = UNSET
        else:
            cpus = self.cpus

        tags: list[str] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags

        devices: list[str] | Unset = UNSET
        if not isinstance(self.devices, Unset):
            devices = self.devices

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kinds": kinds,
                "arch": arch,
                "memory_mb": memory_mb,
            }
        )
        if cpus is not UNSET:
            field_dict["cpus"] = cpus
        if tags is not UNSET:
            field_dict["tags"] = tags
        if devices is not UNSET:
            field_dict["devices"] = devices

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        kinds = cast(list[str], d.pop("kinds"))

        arch = d.pop("arch")

        memory_mb = d.pop("memory_mb")

        def _parse_cpus(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpus = _parse_cpus(d.pop("cpus", UNSET))

        tags = cast(list[str], d.pop("tags", UNSET))

        devices = cast(list[str], d.pop("devices", UNSET))

        pool_machine = cls(
            kinds=kinds,
            arch=arch,
            memory_mb=memory_mb,
            cpus=cpus,
            tags=tags,
            devices=devices,
        )

        return pool_machine
