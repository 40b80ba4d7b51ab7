from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="PoolMachineView")


@_attrs_define
class PoolMachineView:
    """A machine of a pool.

    Attributes:
        name (str): Its name, which is that of its host. Default: ''.
        state (str): `asked`, `boots`, `runs`, `idle`, `closed` or `retires`. Default: ''.
        asked_ms (int): When it was asked for, UTC epoch ms. Default: 0.
        jobs (int): How many jobs it has run. Default: 0.
        why (str | Unset): Why it retires; empty: it does not.
    """

    name: str = ""
    state: str = ""
    asked_ms: int = 0
    jobs: int = 0
    why: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        state = self.state

        asked_ms = self.asked_ms

        jobs = self.jobs

        why = self.why

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "state": state,
                "asked_ms": asked_ms,
                "jobs": jobs,
            }
        )
        if why is not UNSET:
            field_dict["why"] = why

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        state = d.pop("state")

        asked_ms = d.pop("asked_ms")

        jobs = d.pop("jobs")

        why = d.pop("why", UNSET)

        pool_machine_view = cls(
            name=name,
            state=state,
            asked_ms=asked_ms,
            jobs=jobs,
            why=why,
        )

        pool_machine_view.additional_properties = d
        return pool_machine_view

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
