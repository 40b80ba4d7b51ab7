from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.case_totals import CaseTotals


T = TypeVar("T", bound="ShardAnswer")


@_attrs_define
class ShardAnswer:
    """One shard in the answer of its job.

    Attributes:
        shard (int): Its number, from 1.
        job_id (str): The job that it is.
        job_stage (str): How far; empty: it is not stored yet.
        job_health (str): How it ended.
        attempt (int): Which try.
        host (str | Unset): The host that has or had it.
        reason (str | Unset): Why it is as it is.
        reused_from (str | Unset): The job whose result it has; absent: it runs or ran itself.
        cases (CaseTotals | None | Unset): Its test cases; absent: not known.
        result_root (str | Unset): Where its results are.
    """

    shard: int
    job_id: str
    job_stage: str
    job_health: str
    attempt: int
    host: str | Unset = UNSET
    reason: str | Unset = UNSET
    reused_from: str | Unset = UNSET
    cases: CaseTotals | None | Unset = UNSET
    result_root: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.case_totals import CaseTotals

        shard = self.shard

        job_id = self.job_id

        job_stage = self.job_stage

        job_health = self.job_health

        attempt = self.attempt

        host = self.host

        reason = self.reason

        reused_from = self.reused_from

        cases: dict[str, Any] | None | Unset
        if isinstance(self.cases, Unset):
            cases = UNSET
        elif isinstance(self.cases, CaseTotals):
            cases = self.cases.to_dict()
        else:
            cases = self.cases

        result_root = self.result_root

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "job_id": job_id,
                "job_stage": job_stage,
                "job_health": job_health,
                "attempt": attempt,
            }
        )
        if host is not UNSET:
            field_dict["host"] = host
        if reason is not UNSET:
            field_dict["reason"] = reason
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from
        if cases is not UNSET:
            field_dict["cases"] = cases
        if result_root is not UNSET:
            field_dict["result_root"] = result_root

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.case_totals import CaseTotals

        d = dict(src_dict)
        shard = d.pop("shard")

        job_id = d.pop("job_id")

        job_stage = d.pop("job_stage")

        job_health = d.pop("job_health")

        attempt = d.pop("attempt")

        host = d.pop("host", UNSET)

        reason = d.pop("reason", UNSET)

        reused_from = d.pop("reused_from", UNSET)

        def _parse_cases(data: object) -> CaseTotals | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cases_type_0 = CaseTotals.from_dict(data)

                return cases_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CaseTotals | None | Unset, data)

        cases = _parse_cases(d.pop("cases", UNSET))

        result_root = d.pop("result_root", UNSET)

        shard_answer = cls(
            shard=shard,
            job_id=job_id,
            job_stage=job_stage,
            job_health=job_health,
            attempt=attempt,
            host=host,
            reason=reason,
            reused_from=reused_from,
            cases=cases,
            result_root=result_root,
        )

        shard_answer.additional_properties = d
        return shard_answer

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
