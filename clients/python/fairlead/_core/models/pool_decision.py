from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PoolDecision")


@_attrs_define
class PoolDecision:
    """A decision of a pool, with the numbers that it was made by.

    Attributes:
        pool (str): The pool. Default: ''.
        number (int): Its number among the decisions of the pool, from 1. Default: 0.
        at_ms (int): When it was made, UTC epoch ms. Default: 0.
        replica (str): The replica that made it. Default: ''.
        law (str): The law. Default: ''.
        added (list[str]): Names of machines that were asked for.
        retired (list[str]): Names of machines that retire.
        waiting (int): Jobs that lacked only a machine. Default: 0.
        work_s (int): What they need, seconds of a whole machine. Default: 0.
        supply_s (int): What the machines could take of it within the horizon, seconds. Default: 0.
        horizon_s (int): How far the law looked ahead, seconds. Default: 0.
        wanted (int): Machines that the law wanted, before limits. Default: 0.
        booting (int): Machines that booted. Default: 0.
        busy (int): Machines that ran jobs. Default: 0.
        idle (int): Machines that waited for jobs. Default: 0.
        closed (int): Machines that got no jobs: closed, suspect or loaded. Default: 0.
        sentence (str): The decision in words. Default: ''.
    """

    added: list[str]
    retired: list[str]
    pool: str = ""
    number: int = 0
    at_ms: int = 0
    replica: str = ""
    law: str = ""
    waiting: int = 0
    work_s: int = 0
    supply_s: int = 0
    horizon_s: int = 0
    wanted: int = 0
    booting: int = 0
    busy: int = 0
    idle: int = 0
    closed: int = 0
    sentence: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pool = self.pool

        number = self.number

        at_ms = self.at_ms

        replica = self.replica

        law = self.law

        added = self.added

        retired = self.retired

        waiting = self.waiting

        work_s = self.work_s

        supply_s = self.supply_s

        horizon_s = self.horizon_s

        wanted = self.wanted

        booting = self.booting

        busy = self.busy

        idle = self.idle

        closed = self.closed

        sentence = self.sentence

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pool": pool,
                "number": number,
                "at_ms": at_ms,
                "replica": replica,
                "law": law,
                "added": added,
                "retired": retired,
                "waiting": waiting,
                "work_s": work_s,
                "supply_s": supply_s,
                "horizon_s": horizon_s,
                "wanted": wanted,
                "booting": booting,
                "busy": busy,
                "idle": idle,
                "closed": closed,
                "sentence": sentence,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        pool = d.pop("pool")

        number = d.pop("number")

        at_ms = d.pop("at_ms")

        replica = d.pop("replica")

        law = d.pop("law")

        added = cast(list[str], d.pop("added"))

        retired = cast(list[str], d.pop("retired"))

        waiting = d.pop("waiting")

        work_s = d.pop("work_s")

        supply_s = d.pop("supply_s")

        horizon_s = d.pop("horizon_s")

        wanted = d.pop("wanted")

        booting = d.pop("booting")

        busy = d.pop("busy")

        idle = d.pop("idle")

        closed = d.pop("closed")

        sentence = d.pop("sentence")

        pool_decision = cls(
            pool=pool,
            number=number,
            at_ms=at_ms,
            replica=replica,
            law=law,
            added=added,
            retired=retired,
            waiting=waiting,
            work_s=work_s,
            supply_s=supply_s,
            horizon_s=horizon_s,
            wanted=wanted,
            booting=booting,
            busy=busy,
            idle=idle,
            closed=closed,
            sentence=sentence,
        )

        pool_decision.additional_properties = d
        return pool_decision

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
