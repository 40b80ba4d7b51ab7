from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.pool_machine import PoolMachine


T = TypeVar("T", bound="PoolChange")


@_attrs_define
class PoolChange:
    """Changes what an admin says of a pool. What is absent stays as it is; a new pool needs `provider` and `machine`.

    Attributes:
        provider (None | str | Unset): The name of a program in the folder `--providers` of the replicas.
        machine (None | PoolMachine | Unset): What its machines are.
        min_ (int | None | Unset): Machines that it never falls below. A new pool has 2.
        max_ (int | None | Unset): Machines that it never exceeds, at most 10,000. A new pool has 10.
        max_step (int | None | Unset): Machines that it asks for within a minute at most. A new pool has 100.
        boot_s (int | None | Unset): How long a machine takes until it asks for work, seconds, until that was measured.
            A new pool has 180.
        target_s (int | None | Unset): How long a job should wait at most, seconds. A new pool has 0: as long as a
            machine takes to boot, and a minute.
        law (None | str | Unset): Which law decides: `queue_time`, the default, or `seed`.
        max_idle_s (int | None | Unset): How long a machine may be idle while others are taken first, seconds; 0, the
            default: as long as a boot takes.
        max_jobs (int | None | Unset): After how many jobs a machine is replaced; 0, the default: never.
        max_age_s (int | None | Unset): After which time a machine is replaced, seconds; 0, the default: never.
        paused (bool | None | Unset): Whether nothing is asked for and nothing retired.
    """

    provider: None | str | Unset = UNSET
    machine: None | PoolMachine | Unset = UNSET
    min_: int | None | Unset = UNSET
    max_: int | None | Unset = UNSET
    max_step: int | None | Unset = UNSET
    boot_s: int | None | Unset = UNSET
    target_s: int | None | Unset = UNSET
    law: None | str | Unset = UNSET
    max_idle_s: int | None | Unset = UNSET
    max_jobs: int | None | Unset = UNSET
    max_age_s: int | None | Unset = UNSET
    paused: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.pool_machine import PoolMachine

        provider: None | str | Unset
        if isinstance(self.provider, Unset):
            provider = UNSET
        else:
            provider = self.provider

        machine: dict[str, Any] | None | Unset
        if isinstance(self.machine, Unset):
            machine = UNSET
        elif isinstance(self.machine, PoolMachine):
            machine = self.machine.to_dict()
        else:
            machine = self.machine

        min_: int | None | Unset
        if isinstance(self.min_, Unset):
            min_ = UNSET
        else:
            min_ = self.min_

        max_: int | None | Unset
        if isinstance(self.max_, Unset):
            max_ = UNSET
        else:
            max_ = self.max_

        max_step: int | None | Unset
        if isinstance(self.max_step, Unset):
            max_step = UNSET
        else:
            max_step = self.max_step

        boot_s: int | None | Unset
        if isinstance(self.boot_s, Unset):
            boot_s = UNSET
        else:
            boot_s = self.boot_s

        target_s: int | None | Unset
        if isinstance(self.target_s, Unset):
            target_s = UNSET
        else:
            target_s = self.target_s

        law: None | str | Unset
        if isinstance(self.law, Unset):
            law = UNSET
        else:
            law = self.law

        max_idle_s: int | None | Unset
        if isinstance(self.max_idle_s, Unset):
            max_idle_s = UNSET
        else:
            max_idle_s = self.max_idle_s

        max_jobs: int | None | Unset
        if isinstance(self.max_jobs, Unset):
            max_jobs = UNSET
        else:
            max_jobs = self.max_jobs

        max_age_s: int | None | Unset
        if isinstance(self.max_age_s, Unset):
            max_age_s = UNSET
        else:
            max_age_s = self.max_age_s

        paused: bool | None | Unset
        if isinstance(self.paused, Unset):
            paused = UNSET
        else:
            paused = self.paused

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if provider is not UNSET:
            field_dict["provider"] = provider
        if machine is not UNSET:
            field_dict["machine"] = machine
        if min_ is not UNSET:
            field_dict["min"] = min_
        if max_ is not UNSET:
            field_dict["max"] = max_
        if max_step is not UNSET:
            field_dict["max_step"] = max_step
        if boot_s is not UNSET:
            field_dict["boot_s"] = boot_s
        if target_s is not UNSET:
            field_dict["target_s"] = target_s
        if law is not UNSET:
            field_dict["law"] = law
        if max_idle_s is not UNSET:
            field_dict["max_idle_s"] = max_idle_s
        if max_jobs is not UNSET:
            field_dict["max_jobs"] = max_jobs
        if max_age_s is not UNSET:
            field_dict["max_age_s"] = max_age_s
        if paused is not UNSET:
            field_dict["paused"] = paused

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.pool_machine import PoolMachine

        d = dict(src_dict)

        def _parse_provider(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        provider = _parse_provider(d.pop("provider", UNSET))

        def _parse_machine(data: object) -> None | PoolMachine | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                machine_type_0 = PoolMachine.from_dict(data)

                return machine_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PoolMachine | Unset, data)

        machine = _parse_machine(d.pop("machine", UNSET))

        def _parse_min_(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        min_ = _parse_min_(d.pop("min", UNSET))

        def _parse_max_(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_ = _parse_max_(d.pop("max", UNSET))

        def _parse_max_step(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_step = _parse_max_step(d.pop("max_step", UNSET))

        def _parse_boot_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        boot_s = _parse_boot_s(d.pop("boot_s", UNSET))

        def _parse_target_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        target_s = _parse_target_s(d.pop("target_s", UNSET))

        def _parse_law(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        law = _parse_law(d.pop("law", UNSET))

        def _parse_max_idle_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_idle_s = _parse_max_idle_s(d.pop("max_idle_s", UNSET))

        def _parse_max_jobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_jobs = _parse_max_jobs(d.pop("max_jobs", UNSET))

        def _parse_max_age_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_age_s = _parse_max_age_s(d.pop("max_age_s", UNSET))

        def _parse_paused(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        paused = _parse_paused(d.pop("paused", UNSET))

        pool_change = cls(
            provider=provider,
            machine=machine,
            min_=min_,
            max_=max_,
            max_step=max_step,
            boot_s=boot_s,
            target_s=target_s,
            law=law,
            max_idle_s=max_idle_s,
            max_jobs=max_jobs,
            max_age_s=max_age_s,
            paused=paused,
        )

        return pool_change
