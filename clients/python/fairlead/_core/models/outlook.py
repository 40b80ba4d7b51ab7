from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.before import Before
    from ..models.constraint_cost import ConstraintCost
    from ..models.recent_waits import RecentWaits


T = TypeVar("T", bound="Outlook")


@_attrs_define
class Outlook:
    """What a job that is not submitted may expect.

    Attributes:
        queue (str): The queue that it would wait in. Default: ''.
        class_ (int): The priority of that queue, 0 to 9. Default: 0.
        summary (str): Why it would wait, in one sentence. Default: ''.
        hosts_known (int): Hosts that are known. Default: 0.
        hosts_able (int): Hosts that could run it if nothing else ran there. Default: 0.
        hosts_ready (int): Hosts that ask for work and could run it now. Default: 0.
        before (Before): Jobs that wait before a job. Jobs of queues that are paused or at a limit do not count.
        queue_waits (RecentWaits): How long jobs waited in the last hour, from when they could run to when a host got
            them.
        class_waits (RecentWaits): How long jobs waited in the last hour, from when they could run to when a host got
            them.
        costs (list[ConstraintCost] | Unset): Its constraints, and what each costs: the most helpful to give up first,
            at most 8.
    """

    before: Before
    queue_waits: RecentWaits
    class_waits: RecentWaits
    queue: str = ""
    class_: int = 0
    summary: str = ""
    hosts_known: int = 0
    hosts_able: int = 0
    hosts_ready: int = 0
    costs: list[ConstraintCost] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        class_ = self.class_

        summary = self.summary

        hosts_known = self.hosts_known

        hosts_able = self.hosts_able

        hosts_ready = self.hosts_ready

        before = self.before.to_dict()

        queue_waits = self.queue_waits.to_dict()

        class_waits = self.class_waits.to_dict()

        costs: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.costs, Unset):
            costs = []
            for costs_item_data in self.costs:
                costs_item = costs_item_data.to_dict()
                costs.append(costs_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue": queue,
                "class": class_,
                "summary": summary,
                "hosts_known": hosts_known,
                "hosts_able": hosts_able,
                "hosts_ready": hosts_ready,
                "before": before,
                "queue_waits": queue_waits,
                "class_waits": class_waits,
            }
        )
        if costs is not UNSET:
            field_dict["costs"] = costs

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.before import Before
        from ..models.constraint_cost import ConstraintCost
        from ..models.recent_waits import RecentWaits

        d = dict(src_dict)
        queue = d.pop("queue")

        class_ = d.pop("class")

        summary = d.pop("summary")

        hosts_known = d.pop("hosts_known")

        hosts_able = d.pop("hosts_able")

        hosts_ready = d.pop("hosts_ready")

        before = Before.from_dict(d.pop("before"))

        queue_waits = RecentWaits.from_dict(d.pop("queue_waits"))

        class_waits = RecentWaits.from_dict(d.pop("class_waits"))

        _costs = d.pop("costs", UNSET)
        costs: list[ConstraintCost] | Unset = UNSET
        if _costs is not UNSET:
            costs = []
            for costs_item_data in _costs:
                costs_item = ConstraintCost.from_dict(costs_item_data)

                costs.append(costs_item)

        outlook = cls(
            queue=queue,
            class_=class_,
            summary=summary,
            hosts_known=hosts_known,
            hosts_able=hosts_able,
            hosts_ready=hosts_ready,
            before=before,
            queue_waits=queue_waits,
            class_waits=class_waits,
            costs=costs,
        )

        outlook.additional_properties = d
        return outlook

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
