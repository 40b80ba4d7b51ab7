from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.before import Before
    from ..models.compared import Compared
    from ..models.constraint_cost import ConstraintCost
    from ..models.host_verdict import HostVerdict


T = TypeVar("T", bound="Explanation")


@_attrs_define
class Explanation:
    """Why a job waits, or where it is.

    Attributes:
        job_id (str): The job.
        job_stage (str): How far it is.
        summary (str): The answer in one sentence.
        reasons (list[str]): What else is known, one sentence a line, most important first.
        hosts (list[HostVerdict]): For each host that was looked at: whether it could run the job, and what it lacks.
        hosts_more (int): How many more hosts there are than `hosts` shows. Default: 0.
        before (Before | None | Unset): What stands before a job that waits for a host, over all queues.
        costs (list[ConstraintCost] | Unset): Constraints of a job that waits for a host, and what each costs: the most
            helpful to give up first, at most 8.
        compared (Compared | None | Unset): Of a job that has ended on a host: the same suite on other hosts, and other
            suites on this host.
    """

    job_id: str
    job_stage: str
    summary: str
    reasons: list[str]
    hosts: list[HostVerdict]
    hosts_more: int = 0
    before: Before | None | Unset = UNSET
    costs: list[ConstraintCost] | Unset = UNSET
    compared: Compared | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.before import Before
        from ..models.compared import Compared

        job_id = self.job_id

        job_stage = self.job_stage

        summary = self.summary

        reasons = self.reasons

        hosts = []
        for hosts_item_data in self.hosts:
            hosts_item = hosts_item_data.to_dict()
            hosts.append(hosts_item)

        hosts_more = self.hosts_more

        before: dict[str, Any] | None | Unset
        if isinstance(self.before, Unset):
            before = UNSET
        elif isinstance(self.before, Before):
            before = self.before.to_dict()
        else:
            before = self.before

        costs: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.costs, Unset):
            costs = []
            for costs_item_data in self.costs:
                costs_item = costs_item_data.to_dict()
                costs.append(costs_item)

        compared: dict[str, Any] | None | Unset
        if isinstance(self.compared, Unset):
            compared = UNSET
        elif isinstance(self.compared, Compared):
            compared = self.compared.to_dict()
        else:
            compared = self.compared

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "job_stage": job_stage,
                "summary": summary,
                "reasons": reasons,
                "hosts": hosts,
                "hosts_more": hosts_more,
            }
        )
        if before is not UNSET:
            field_dict["before"] = before
        if costs is not UNSET:
            field_dict["costs"] = costs
        if compared is not UNSET:
            field_dict["compared"] = compared

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.before import Before
        from ..models.compared import Compared
        from ..models.constraint_cost import ConstraintCost
        from ..models.host_verdict import HostVerdict

        d = dict(src_dict)
        job_id = d.pop("job_id")

        job_stage = d.pop("job_stage")

        summary = d.pop("summary")

        reasons = cast(list[str], d.pop("reasons"))

        hosts = []
        _hosts = d.pop("hosts")
        for hosts_item_data in _hosts:
            hosts_item = HostVerdict.from_dict(hosts_item_data)

            hosts.append(hosts_item)

        hosts_more = d.pop("hosts_more")

        def _parse_before(data: object) -> Before | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = Before.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Before | None | Unset, data)

        before = _parse_before(d.pop("before", UNSET))

        _costs = d.pop("costs", UNSET)
        costs: list[ConstraintCost] | Unset = UNSET
        if _costs is not UNSET:
            costs = []
            for costs_item_data in _costs:
                costs_item = ConstraintCost.from_dict(costs_item_data)

                costs.append(costs_item)

        def _parse_compared(data: object) -> Compared | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                compared_type_0 = Compared.from_dict(data)

                return compared_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Compared | None | Unset, data)

        compared = _parse_compared(d.pop("compared", UNSET))

        explanation = cls(
            job_id=job_id,
            job_stage=job_stage,
            summary=summary,
            reasons=reasons,
            hosts=hosts,
            hosts_more=hosts_more,
            before=before,
            costs=costs,
            compared=compared,
        )

        explanation.additional_properties = d
        return explanation

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
