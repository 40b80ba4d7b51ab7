from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.shard_counts import ShardCounts


T = TypeVar("T", bound="JobSummary")


@_attrs_define
class JobSummary:
    """A line of a list of jobs.

    Attributes:
        job_id (str): The job.
        job_stage (str): How far.
        job_health (str): How it ended.
        job_data_readiness (str): Whether results are in.
        my_account (str): Who is charged.
        queue (str): Its queue.
        priority (int): Its priority.
        suite (str): Its suite.
        params (str): Short parameters. Default: ''.
        testbox (str): Testbox asked for.
        tbox_group (str): Its group.
        host (str): The host that has or had it. Default: ''.
        attempt (int): Which try.
        submit_id (str): Which submit. Default: ''.
        memory_mb (int): Memory, MB.
        cpus (int): CPUs. Default: 0.
        submit_ms (int): When submitted.
        reason (str): Why it is as it is. Default: ''.
        result_root (str): Where its results are. Default: ''.
        queue_label (str | Unset): The label that it has inside that queue: the name that was asked for, which is no
            shared queue.
        kv (list[str] | Unset): The words `key=value` that it is found by, if `with_kv=true` asked for them.
        ready_ms (int | None | Unset): When it could run: since then it waits, or waited, for a host alone; absent: not
            yet, or an older scheduler says it.
        dispatch_ms (int | None | Unset): When dispatched; absent: not yet.
        running_ms (int | None | Unset): When its script began; absent: not yet.
        end_ms (int | None | Unset): When it ended; absent: not yet.
        exit_code (int | None | Unset): Exit code, where it has one.
        failure (str | Unset): What made it end badly: `infra` (the machine, the network), or the job's own `fail`,
            `timeout`, `oom`, `panic`.
        held_by (str | Unset): Who holds it back while it waits; absent: nobody.
        crash_signature (str | Unset): The title of the kernel crash that it printed.
        shards (None | ShardCounts | Unset): Of a job that runs in parts: how far its shards are.
        shard_of (str | Unset): Of a shard: its parent.
        reused_from (str | Unset): The job whose result it has; empty: it runs or ran itself.
    """

    job_id: str
    job_stage: str
    job_health: str
    job_data_readiness: str
    my_account: str
    queue: str
    priority: int
    suite: str
    testbox: str
    tbox_group: str
    attempt: int
    memory_mb: int
    submit_ms: int
    params: str = ""
    host: str = ""
    submit_id: str = ""
    cpus: int = 0
    reason: str = ""
    result_root: str = ""
    queue_label: str | Unset = UNSET
    kv: list[str] | Unset = UNSET
    ready_ms: int | None | Unset = UNSET
    dispatch_ms: int | None | Unset = UNSET
    running_ms: int | None | Unset = UNSET
    end_ms: int | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    failure: str | Unset = UNSET
    held_by: str | Unset = UNSET
    crash_signature: str | Unset = UNSET
    shards: None | ShardCounts | Unset = UNSET
    shard_of: str | Unset = UNSET
    reused_from: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shard_counts import ShardCounts

        job_id = self.job_id

        job_stage = self.job_stage

        job_health = self.job_health

        job_data_readiness = self.job_data_readiness

        my_account = self.my_account

        queue = self.queue

        priority = self.priority

        suite = self.suite

        params = self.params

        testbox = self.testbox

        tbox_group = self.tbox_group

        host = self.host

        attempt = self.attempt

        submit_id = self.submit_id

        memory_mb = self.memory_mb

        cpus = self.cpus

        submit_ms = self.submit_ms

        reason = self.reason

        result_root = self.result_root

        queue_label = self.queue_label

        kv: list[str] | Unset = UNSET
        if not isinstance(self.kv, Unset):
            kv = self.kv

        ready_ms: int | None | Unset
        if isinstance(self.ready_ms, Unset):
            ready_ms = UNSET
        else:
            ready_ms = self.ready_ms

        dispatch_ms: int | None | Unset
        if isinstance(self.dispatch_ms, Unset):
            dispatch_ms = UNSET
        else:
            dispatch_ms = self.dispatch_ms

        running_ms: int | None | Unset
        if isinstance(self.running_ms, Unset):
            running_ms = UNSET
        else:
            running_ms = self.running_ms

        end_ms: int | None | Unset
        if isinstance(self.end_ms, Unset):
            end_ms = UNSET
        else:
            end_ms = self.end_ms

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        failure = self.failure

        held_by = self.held_by

        crash_signature = self.crash_signature

        shards: dict[str, Any] | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        elif isinstance(self.shards, ShardCounts):
            shards = self.shards.to_dict()
        else:
            shards = self.shards

        shard_of = self.shard_of

        reused_from = self.reused_from

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "job_stage": job_stage,
                "job_health": job_health,
                "job_data_readiness": job_data_readiness,
                "my_account": my_account,
                "queue": queue,
                "priority": priority,
                "suite": suite,
                "params": params,
                "testbox": testbox,
                "tbox_group": tbox_group,
                "host": host,
                "attempt": attempt,
                "submit_id": submit_id,
                "memory_mb": memory_mb,
                "cpus": cpus,
                "submit_ms": submit_ms,
                "reason": reason,
                "result_root": result_root,
            }
        )
        if queue_label is not UNSET:
            field_dict["queue_label"] = queue_label
        if kv is not UNSET:
            field_dict["kv"] = kv
        if ready_ms is not UNSET:
            field_dict["ready_ms"] = ready_ms
        if dispatch_ms is not UNSET:
            field_dict["dispatch_ms"] = dispatch_ms
        if running_ms is not UNSET:
            field_dict["running_ms"] = running_ms
        if end_ms is not UNSET:
            field_dict["end_ms"] = end_ms
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if failure is not UNSET:
            field_dict["failure"] = failure
        if held_by is not UNSET:
            field_dict["held_by"] = held_by
        if crash_signature is not UNSET:
            field_dict["crash_signature"] = crash_signature
        if shards is not UNSET:
            field_dict["shards"] = shards
        if shard_of is not UNSET:
            field_dict["shard_of"] = shard_of
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.shard_counts import ShardCounts

        d = dict(src_dict)
        job_id = d.pop("job_id")

        job_stage = d.pop("job_stage")

        job_health = d.pop("job_health")

        job_data_readiness = d.pop("job_data_readiness")

        my_account = d.pop("my_account")

        queue = d.pop("queue")

        priority = d.pop("priority")

        suite = d.pop("suite")

        params = d.pop("params")

        testbox = d.pop("testbox")

        tbox_group = d.pop("tbox_group")

        host = d.pop("host")

        attempt = d.pop("attempt")

        submit_id = d.pop("submit_id")

        memory_mb = d.pop("memory_mb")

        cpus = d.pop("cpus")

        submit_ms = d.pop("submit_ms")

        reason = d.pop("reason")

        result_root = d.pop("result_root")

        queue_label = d.pop("queue_label", UNSET)

        kv = cast(list[str], d.pop("kv", UNSET))

        def _parse_ready_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ready_ms = _parse_ready_ms(d.pop("ready_ms", UNSET))

        def _parse_dispatch_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        dispatch_ms = _parse_dispatch_ms(d.pop("dispatch_ms", UNSET))

        def _parse_running_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        running_ms = _parse_running_ms(d.pop("running_ms", UNSET))

        def _parse_end_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        end_ms = _parse_end_ms(d.pop("end_ms", UNSET))

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        failure = d.pop("failure", UNSET)

        held_by = d.pop("held_by", UNSET)

        crash_signature = d.pop("crash_signature", UNSET)

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

        shard_of = d.pop("shard_of", UNSET)

        reused_from = d.pop("reused_from", UNSET)

        job_summary = cls(
            job_id=job_id,
            job_stage=job_stage,
            job_health=job_health,
            job_data_readiness=job_data_readiness,
            my_account=my_account,
            queue=queue,
            priority=priority,
            suite=suite,
            params=params,
            testbox=testbox,
            tbox_group=tbox_group,
            host=host,
            attempt=attempt,
            submit_id=submit_id,
            memory_mb=memory_mb,
            cpus=cpus,
            submit_ms=submit_ms,
            reason=reason,
            result_root=result_root,
            queue_label=queue_label,
            kv=kv,
            ready_ms=ready_ms,
            dispatch_ms=dispatch_ms,
            running_ms=running_ms,
            end_ms=end_ms,
            exit_code=exit_code,
            failure=failure,
            held_by=held_by,
            crash_signature=crash_signature,
            shards=shards,
            shard_of=shard_of,
            reused_from=reused_from,
        )

        job_summary.additional_properties = d
        return job_summary

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
