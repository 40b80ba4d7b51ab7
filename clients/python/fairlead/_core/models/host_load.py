from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="HostLoad")


@_attrs_define
class HostLoad:
    """How loaded a host is, as its agent measured it a moment ago.

    Attributes:
        memory_total_mb (int): Memory of the machine, or of the control group that bounds the agent, MB.
        memory_available_mb (int): What of it programs may still take without swapping, MB.
        unpromised_memory_mb (int): What of the host's `memory_mb` no job of it was promised, MB. `free_memory_mb` is no
            more than that, and no more
            than what is really available less a tenth of the machine's memory. Default: 0.
        jobs (int): Jobs that run there. Default: 0.
        loaded (bool): Whether it is loaded: it has been above 90 % of its memory, and since then not below 80 % for 30
            s without a
            break. Such a host gets jobs only if all hosts that could run them are loaded. Never true of a hw host. Default:
            False.
        cpu_pressure_percent (int | None | Unset): Part of the last 10 s in which something waited for a CPU, percent
            (`some avg10` of `/proc/pressure/cpu`).
            Absent: the kernel does not tell.
        memory_pressure_percent (int | None | Unset): The same for memory.
    """

    memory_total_mb: int
    memory_available_mb: int
    unpromised_memory_mb: int = 0
    jobs: int = 0
    loaded: bool = False
    cpu_pressure_percent: int | None | Unset = UNSET
    memory_pressure_percent: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        memory_total_mb = self.memory_total_mb

        memory_available_mb = self.memory_available_mb

        unpromised_memory_mb = self.unpromised_memory_mb

        jobs = self.jobs

        loaded = self.loaded

        cpu_pressure_percent: int | None | Unset
        if isinstance(self.cpu_pressure_percent, Unset):
            cpu_pressure_percent = UNSET
        else:
            cpu_pressure_percent = self.cpu_pressure_percent

        memory_pressure_percent: int | None | Unset
        if isinstance(self.memory_pressure_percent, Unset):
            memory_pressure_percent = UNSET
        else:
            memory_pressure_percent = self.memory_pressure_percent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "memory_total_mb": memory_total_mb,
                "memory_available_mb": memory_available_mb,
                "unpromised_memory_mb": unpromised_memory_mb,
                "jobs": jobs,
                "loaded": loaded,
            }
        )
        if cpu_pressure_percent is not UNSET:
            field_dict["cpu_pressure_percent"] = cpu_pressure_percent
        if memory_pressure_percent is not UNSET:
            field_dict["memory_pressure_percent"] = memory_pressure_percent

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        memory_total_mb = d.pop("memory_total_mb")

        memory_available_mb = d.pop("memory_available_mb")

        unpromised_memory_mb = d.pop("unpromised_memory_mb")

        jobs = d.pop("jobs")

        loaded = d.pop("loaded")

        def _parse_cpu_pressure_percent(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpu_pressure_percent = _parse_cpu_pressure_percent(
            d.pop("cpu_pressure_percent", UNSET)
        )

        def _parse_memory_pressure_percent(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_pressure_percent = _parse_memory_pressure_percent(
            d.pop("memory_pressure_percent", UNSET)
        )

        host_load = cls(
            memory_total_mb=memory_total_mb,
            memory_available_mb=memory_available_mb,
            unpromised_memory_mb=unpromised_memory_mb,
            jobs=jobs,
            loaded=loaded,
            cpu_pressure_percent=cpu_pressure_percent,
            memory_pressure_percent=memory_pressure_percent,
        )

        host_load.additional_properties = d
        return host_load

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
