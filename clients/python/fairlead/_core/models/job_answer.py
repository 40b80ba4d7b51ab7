from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.case_totals import CaseTotals
    from ..models.shard_answer import ShardAnswer
    from ..models.shard_counts import ShardCounts


T = TypeVar("T", bound="JobAnswer")


@_attrs_define
class JobAnswer:
    """The answer of a job, `GET /r/ID`. It is there before anything ran.

    Attributes:
        job_id (str): The job.
        over (bool): Whether it has ended: nothing of this changes any more, but for results that come late.
        job_stage (str): How far.
        job_health (str): How it ended.
        suite (str): Its suite.
        my_account (str): Who is charged.
        submit_ms (int): When submitted, UTC epoch ms.
        reason (str | Unset): Why it is as it is.
        reused_from (str | Unset): The job whose result it has; absent: it runs or ran itself.
        end_ms (int | None | Unset): When it ended, UTC epoch ms; absent: not yet.
        cases (CaseTotals | None | Unset): Its test cases, of all shards that have ended; absent: none is known.
        group (str | Unset): The name of the group whose result this is; absent: it is of no group.
        open_ (bool | Unset): Whether more jobs may join the group.
        shards (None | ShardCounts | Unset): How far its shards are; absent: it has none.
        parts (list[ShardAnswer] | Unset): Its shards, in order.
        result_root (str | Unset): Where its results are.
    """

    job_id: str
    over: bool
    job_stage: str
    job_health: str
    suite: str
    my_account: str
    submit_ms: int
    reason: str | Unset = UNSET
    reused_from: str | Unset = UNSET
    end_ms: int | None | Unset = UNSET
    cases: CaseTotals | None | Unset = UNSET
    group: str | Unset = UNSET
    open_: bool | Unset = UNSET
    shards: None | ShardCounts | Unset = UNSET
    parts: list[ShardAnswer] | Unset = UNSET
    result_root: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.case_totals import CaseTotals
        from ..models.shard_counts import ShardCounts

        job_id = self.job_id

        over = self.over

        job_stage = self.job_stage

        job_health = self.job_health

        suite = self.suite

        my_account = self.my_account

        submit_ms = self.submit_ms

        reason = self.reason

        reused_from = self.reused_from

        end_ms: int | None | Unset
        if isinstance(self.end_ms, Unset):
            end_ms = UNSET
        else:
            end_ms = self.end_ms

        cases: dict[str, Any] | None | Unset
        if isinstance(self.cases, Unset):
            cases = UNSET
        elif isinstance(self.cases, CaseTotals):
            cases = self.cases.to_dict()
        else:
            cases = self.cases

        group = self.group

        open_ = self.open_

        shards: dict[str, Any] | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        elif isinstance(self.shards, ShardCounts):
            shards = self.shards.to_dict()
        else:
            shards = self.shards

        parts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.parts, Unset):
            parts = []
            for parts_item_data in self.parts:
                parts_item = parts_item_data.to_dict()
                parts.append(parts_item)

        result_root = self.result_root

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "over": over,
                "job_stage": job_stage,
                "job_health": job_health,
                "suite": suite,
                "my_account": my_account,
                "submit_ms": submit_ms,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from
        if end_ms is not UNSET:
            field_dict["end_ms"] = end_ms
        if cases is not UNSET:
            field_dict["cases"] = cases
        if group is not UNSET:
            field_dict["group"] = group
        if open_ is not UNSET:
            field_dict["open"] = open_
        if shards is not UNSET:
            field_dict["shards"] = shards
        if parts is not UNSET:
            field_dict["parts"] = parts
        if result_root is not UNSET:
            field_dict["result_root"] = result_root

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.case_totals import CaseTotals
        from ..models.shard_answer import ShardAnswer
        from ..models.shard_counts import ShardCounts

        d = dict(src_dict)
        job_id = d.pop("job_id")

        over = d.pop("over")

        job_stage = d.pop("job_stage")

        job_health = d.pop("job_health")

        suite = d.pop("suite")

        my_account = d.pop("my_account")

        submit_ms = d.pop("submit_ms")

        reason = d.pop("reason", UNSET)

        reused_from = d.pop("reused_from", UNSET)

        def _parse_end_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        end_ms = _parse_end_ms(d.pop("end_ms", UNSET))

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

        group = d.pop("group", UNSET)

        open_ = d.pop("open", UNSET)

        def _parse_shards(data: object) -> None | ShardCounts | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shards_type_0 = ShardCounts.from_dict(data)

                return shards_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShardCounts | Unset, data)

        shards = _parse_shards(d.pop("shards", UNSET))

        _parts = d.pop("parts", UNSET)
        parts: list[ShardAnswer] | Unset = UNSET
        if _parts is not UNSET:
            parts = []
            for parts_item_data in _parts:
                parts_item = ShardAnswer.from_dict(parts_item_data)

                parts.append(parts_item)

        result_root = d.pop("result_root", UNSET)

        job_answer = cls(
            job_id=job_id,
            over=over,
            job_stage=job_stage,
            job_health=job_health,
            suite=suite,
            my_account=my_account,
            submit_ms=submit_ms,
            reason=reason,
            reused_from=reused_from,
            end_ms=end_ms,
            cases=cases,
            group=group,
            open_=open_,
            shards=shards,
            parts=parts,
            result_root=result_root,
        )

        job_answer.additional_properties = d
        return job_answer

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
