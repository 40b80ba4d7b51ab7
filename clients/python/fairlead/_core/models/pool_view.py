from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.pool_machine import PoolMachine
    from ..models.pool_machine_view import PoolMachineView


T = TypeVar("T", bound="PoolView")


@_attrs_define
class PoolView:
    """A pool as it is.

    Attributes:
        name (str): Its name. Default: ''.
        provider (str): See [`PoolChange::provider`]. Default: ''.
        machine (PoolMachine): What the machines of a pool are: jobs that such a machine could run may wait for one.
        min_ (int): Machines that it never falls below. Default: 0.
        max_ (int): Machines that it never exceeds. Default: 0.
        max_step (int): Machines that it asks for within a minute at most. Default: 0.
        target_s (int): How long jobs should wait at most, seconds. Default: 0.
        law (str): Which law decides. Default: ''.
        max_idle_s (int): See [`PoolChange::max_idle_s`]. Default: 0.
        max_jobs (int): See [`PoolChange::max_jobs`]. Default: 0.
        max_age_s (int): See [`PoolChange::max_age_s`]. Default: 0.
        paused (bool): Whether nothing is asked for and nothing retired. Default: False.
        boot_s (int): How long a machine takes until it asks for work, seconds: measured, or as was said. Default: 0.
        boots (int): Of how many boots that is the mean; 0: none was measured. Default: 0.
        machines (list[PoolMachineView]): Its machines, by name.
        problem (str | Unset): Why machines could not be listed, made or ended when that was last tried; empty: they
            could.
    """

    machine: PoolMachine
    machines: list[PoolMachineView]
    name: str = ""
    provider: str = ""
    min_: int = 0
    max_: int = 0
    max_step: int = 0
    target_s: int = 0
    law: str = ""
    max_idle_s: int = 0
    max_jobs: int = 0
    max_age_s: int = 0
    paused: bool = False
    boot_s: int = 0
    boots: int = 0
    problem: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        provider = self.provider

        machine = self.machine.to_dict()

        min_ = self.min_

        max_ = self.max_

        max_step = self.max_step

        target_s = self.target_s

        law = self.law

        max_idle_s = self.max_idle_s

        max_jobs = self.max_jobs

        max_age_s = self.max_age_s

        paused = self.paused

        boot_s = self.boot_s

        boots = self.boots

        machines = []
        for machines_item_data in self.machines:
            machines_item = machines_item_data.to_dict()
            machines.append(machines_item)

        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "provider": provider,
                "machine": machine,
                "min": min_,
                "max": max_,
                "max_step": max_step,
                "target_s": target_s,
                "law": law,
                "max_idle_s": max_idle_s,
                "max_jobs": max_jobs,
                "max_age_s": max_age_s,
                "paused": paused,
                "boot_s": boot_s,
                "boots": boots,
                "machines": machines,
            }
        )
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.pool_machine import PoolMachine
        from ..models.pool_machine_view import PoolMachineView

        d = dict(src_dict)
        name = d.pop("name")

        provider = d.pop("provider")

        machine = PoolMachine.from_dict(d.pop("machine"))

        min_ = d.pop("min")

        max_ = d.pop("max")

        max_step = d.pop("max_step")

        target_s = d.pop("target_s")

        law = d.pop("law")

        max_idle_s = d.pop("max_idle_s")

        max_jobs = d.pop("max_jobs")

        max_age_s = d.pop("max_age_s")

        paused = d.pop("paused")

        boot_s = d.pop("boot_s")

        boots = d.pop("boots")

        machines = []
        _machines = d.pop("machines")
        for machines_item_data in _machines:
            machines_item = PoolMachineView.from_dict(machines_item_data)

            machines.append(machines_item)

        problem = d.pop("problem", UNSET)

        pool_view = cls(
            name=name,
            provider=provider,
            machine=machine,
            min_=min_,
            max_=max_,
            max_step=max_step,
            target_s=target_s,
            law=law,
            max_idle_s=max_idle_s,
            max_jobs=max_jobs,
            max_age_s=max_age_s,
            paused=paused,
            boot_s=boot_s,
            boots=boots,
            machines=machines,
            problem=problem,
        )

        pool_view.additional_properties = d
        return pool_view

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
