from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attempt_view import AttemptView
    from ..models.case_totals import CaseTotals
    from ..models.job_view_edits import JobViewEdits
    from ..models.job_view_shards_by_health import JobViewShardsByHealth
    from ..models.job_view_waits_type_0 import JobViewWaitsType0
    from ..models.rule_applied import RuleApplied


T = TypeVar("T", bound="JobView")


@_attrs_define
class JobView:
    """A job: the fields of the job file, and over them what the scheduler knows. Times in words are UTC.

    Attributes:
        job_id (str): The job. Default: ''.
        id (str): compass-ci's name of `job_id`. Default: ''.
        job_stage (str): How far: `submit`, `dispatch`, `boot`, `setup`, `wait_peer`, `running`, `post_run`,
            `manual_check`, `finish`,
            `cancel`, or an abort. Default: ''.
        job_state (str): compass-ci's name of `job_stage`. Default: ''.
        istage (int): The number of the stage, as compass-ci counts. Default: 0.
        job_health (str): How it ended: `success`, `fail`, …; `unknown`: it has not ended. Default: ''.
        job_data_readiness (str): Whether results are in: `NA`, `norun`, `uploaded`, `complete`, … Default: ''.
        idata_readiness (int): Its number, as compass-ci counts. Default: 0.
        my_account (str): Who is charged. Default: ''.
        queue (str): Its queue. Default: ''.
        priority (int): Its priority. Default: 0.
        suite (str): Its suite. Default: ''.
        testbox (str): The testbox that it asked for. Default: ''.
        tbox_group (str): Its group of hosts. Default: ''.
        tbox_type (str): Its kind of testbox: `hw`, `vm` or `dc`. Default: ''.
        memory_mb (int): Memory, MB. Default: 0.
        cpus (int): CPUs. Default: 0.
        host_keys (list[str]): Names, one of which a host must offer.
        timeout_seconds (int): Its time limit in stage running, seconds. Default: 0.
        attempt (int): Which try, from 1. Default: 0.
        result_root (str): The folder of its results. Default: ''.
        submit_ms (int): When it was submitted, UTC epoch ms. Default: 0.
        submit_time (str): When it was submitted. Default: ''.
        queue_label (None | str | Unset): The name that was asked for, where that is a label inside the queue.
        category (None | str | Unset): The kind of its test.
        params (None | str | Unset): Short parameters.
        arch (None | str | Unset): The architecture that it needs; absent: any.
        attempts (list[AttemptView] | Unset): Its earlier tries, oldest first.
        submit_id (None | str | Unset): The submit that it belongs to.
        group_id (None | str | Unset): The group that it belongs to.
        sequence (None | str | Unset): The sequence that it belongs to.
        held_by (None | str | Unset): Who holds it back.
        edits (JobViewEdits | Unset): Fields that were changed while it waited, each with `submitted` and `now`.
        submit_rule (None | RuleApplied | Unset): The submit rule that it met, and what it changed.
        rerun_of (None | str | Unset): The job that it runs again.
        reused_from (None | str | Unset): The job whose result it has: nothing ran for it.
        joined (None | str | Unset): The job that ran the same thing when it was submitted, and for whose result it
            waits or waited.
        audit_of (None | str | Unset): The job whose result it could have had: it runs all the same, and both are
            compared.
        host (None | str | Unset): The host that has or had it.
        host_machine (None | str | Unset): compass-ci's name of `host`.
        reason (None | str | Unset): Why it is as it is.
        failure (None | str | Unset): What made it end badly: `infra`, `fail`, `timeout`, `oom` or `panic`.
        last_success_stage (None | str | Unset): The last stage that it reached before it ended badly.
        exit_code (int | None | Unset): The exit code of its script.
        crash_signature (None | str | Unset): The title of the kernel crash that it printed.
        peak_memory_mb (int | None | Unset): The most memory that it had at one time, MB.
        cpu_ms (int | None | Unset): CPU time of all of its processes, ms.
        inputs (list[str] | Unset): The ids of its inputs, in the order of the job file; `job:ID` stands for the outputs
            of a job that it waits for.
        outputs (None | str | Unset): The id of its outputs.
        declared_inputs (Any | Unset): `inputs` of the job file.
        declared_outputs (Any | Unset): `outputs` of the job file.
        milestones (list[str] | Unset): Milestones that it reached.
        cases (CaseTotals | None | Unset): Its test cases.
        waits (JobViewWaitsType0 | None | Unset): What it waits for.
        shards_total (int | None | Unset): Of a job that runs in parts: how many.
        shards_by_health (JobViewShardsByHealth | Unset): How many of its shards ended with which health.
        cluster_id (None | str | Unset): Of a node of a cluster: the job that names the cluster.
        cluster_jobs (list[str] | Unset): All nodes of the cluster.
        cluster_round (int | None | Unset): How often the cluster has begun.
        node_roles (None | str | Unset): What the node does.
        direct_ips (list[str] | Unset): The addresses of the node's testbox.
        dispatch_ms (int | None | Unset): When a host got it, UTC epoch ms.
        running_ms (int | None | Unset): When its script began, UTC epoch ms.
        end_ms (int | None | Unset): When it ended, UTC epoch ms.
        deadline_ms (int | None | Unset): By when the running attempt must be over, UTC epoch ms.
        dispatch_time (None | str | Unset): When a host got it.
        boot_time (None | str | Unset): When its testbox began to boot.
        setup_time (None | str | Unset): When its setup began.
        wait_peer_time (None | str | Unset): When it began to wait for the other nodes of its cluster.
        running_time (None | str | Unset): When its script began.
        post_run_time (None | str | Unset): When its script was over.
        manual_check_time (None | str | Unset): When it was held for a person.
        finish_time (None | str | Unset): When it ended in stage finish.
        cancel_time (None | str | Unset): When it was cancelled.
        abort_time (None | str | Unset): When it was aborted.
        deadline_utc (None | str | Unset): By when the running attempt must be over.
        start_time (None | str | Unset): It does not start before.
        finish_by_time (None | str | Unset): By when it must be over, however far it is.
        run_seconds (int | None | Unset): How long its script ran, seconds.
    """

    host_keys: list[str]
    job_id: str = ""
    id: str = ""
    job_stage: str = ""
    job_state: str = ""
    istage: int = 0
    job_health: str = ""
    job_data_readiness: str = ""
    idata_readiness: int = 0
    my_account: str = ""
    queue: str = ""
    priority: int = 0
    suite: str = ""
    testbox: str = ""
    tbox_group: str = ""
    tbox_type: str = ""
    memory_mb: int = 0
    cpus: int = 0
    timeout_seconds: int = 0
    attempt: int = 0
    result_root: str = ""
    submit_ms: int = 0
    submit_time: str = ""
    queue_label: None | str | Unset = UNSET
    category: None | str | Unset = UNSET
    params: None | str | Unset = UNSET
    arch: None | str | Unset = UNSET
    attempts: list[AttemptView] | Unset = UNSET
    submit_id: None | str | Unset = UNSET
    group_id: None | str | Unset = UNSET
    sequence: None | str | Unset = UNSET
    held_by: None | str | Unset = UNSET
    edits: JobViewEdits | Unset = UNSET
    submit_rule: None | RuleApplied | Unset = UNSET
    rerun_of: None | str | Unset = UNSET
    reused_from: None | str | Unset = UNSET
    joined: None | str | Unset = UNSET
    audit_of: None | str | Unset = UNSET
    host: None | str | Unset = UNSET
    host_machine: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    failure: None | str | Unset = UNSET
    last_success_stage: None | str | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    crash_signature: None | str | Unset = UNSET
    peak_memory_mb: int | None | Unset = UNSET
    cpu_ms: int | None | Unset = UNSET
    inputs: list[str] | Unset = UNSET
    outputs: None | str | Unset = UNSET
    declared_inputs: Any | Unset = UNSET
    declared_outputs: Any | Unset = UNSET
    milestones: list[str] | Unset = UNSET
    cases: CaseTotals | None | Unset = UNSET
    waits: JobViewWaitsType0 | None | Unset = UNSET
    shards_total: int | None | Unset = UNSET
    shards_by_health: JobViewShardsByHealth | Unset = UNSET
    cluster_id: None | str | Unset = UNSET
    cluster_jobs: list[str] | Unset = UNSET
    cluster_round: int | None | Unset = UNSET
    node_roles: None | str | Unset = UNSET
    direct_ips: list[str] | Unset = UNSET
    dispatch_ms: int | None | Unset = UNSET
    running_ms: int | None | Unset = UNSET
    end_ms: int | None | Unset = UNSET
    deadline_ms: int | None | Unset = UNSET
    dispatch_time: None | str | Unset = UNSET
    boot_time: None | str | Unset = UNSET
    setup_time: None | str | Unset = UNSET
    wait_peer_time: None | str | Unset = UNSET
    running_time: None | str | Unset = UNSET
    post_run_time: None | str | Unset = UNSET
    manual_check_time: None | str | Unset = UNSET
    finish_time: None | str | Unset = UNSET
    cancel_time: None | str | Unset = UNSET
    abort_time: None | str | Unset = UNSET
    deadline_utc: None | str | Unset = UNSET
    start_time: None | str | Unset = UNSET
    finish_by_time: None | str | Unset = UNSET
    run_seconds: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.case_totals import CaseTotals
        from ..models.job_view_waits_type_0 import JobViewWaitsType0
        from ..models.rule_applied import RuleApplied

        job_id = self.job_id

        id = self.id

        job_stage = self.job_stage

        job_state = self.job_state

        istage = self.istage

        job_health = self.job_health

        job_data_readiness = self.job_data_readiness

        idata_readiness = self.idata_readiness

        my_account = self.my_account

        queue = self.queue

        priority = self.priority

        suite = self.suite

        testbox = self.testbox

        tbox_group = self.tbox_group

        tbox_type = self.tbox_type

        memory_mb = self.memory_mb

        cpus = self.cpus

        host_keys = self.host_keys

        timeout_seconds = self.timeout_seconds

        attempt = self.attempt

        result_root = self.result_root

        submit_ms = self.submit_ms

        submit_time = self.submit_time

        queue_label: None | str | Unset
        if isinstance(self.queue_label, Unset):
            queue_label = UNSET
        else:
            queue_label = self.queue_label

        category: None | str | Unset
        if isinstance(self.category, Unset):
            category = UNSET
        else:
            category = self.category

        params: None | str | Unset
        if isinstance(self.params, Unset):
            params = UNSET
        else:
            params = self.params

        arch: None | str | Unset
        if isinstance(self.arch, Unset):
            arch = UNSET
        else:
            arch = self.arch

        attempts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.attempts, Unset):
            attempts = []
            for attempts_item_data in self.attempts:
                attempts_item = attempts_item_data.to_dict()
                attempts.append(attempts_item)

        submit_id: None | str | Unset
        if isinstance(self.submit_id, Unset):
            submit_id = UNSET
        else:
            submit_id = self.submit_id

        group_id: None | str | Unset
        if isinstance(self.group_id, Unset):
            group_id = UNSET
        else:
            group_id = self.group_id

        sequence: None | str | Unset
        if isinstance(self.sequence, Unset):
            sequence = UNSET
        else:
            sequence = self.sequence

        held_by: None | str | Unset
        if isinstance(self.held_by, Unset):
            held_by = UNSET
        else:
            held_by = self.held_by

        edits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.edits, Unset):
            edits = self.edits.to_dict()

        submit_rule: dict[str, Any] | None | Unset
        if isinstance(self.submit_rule, Unset):
            submit_rule = UNSET
        elif isinstance(self.submit_rule, RuleApplied):
            submit_rule = self.submit_rule.to_dict()
        else:
            submit_rule = self.submit_rule

        rerun_of: None | str | Unset
        if isinstance(self.rerun_of, Unset):
            rerun_of = UNSET
        else:
            rerun_of = self.rerun_of

        reused_from: None | str | Unset
        if isinstance(self.reused_from, Unset):
            reused_from = UNSET
        else:
            reused_from = self.reused_from

        joined: None | str | Unset
        if isinstance(self.joined, Unset):
            joined = UNSET
        else:
            joined = self.joined

        audit_of: None | str | Unset
        if isinstance(self.audit_of, Unset):
            audit_of = UNSET
        else:
            audit_of = self.audit_of

        host: None | str | Unset
        if isinstance(self.host, Unset):
            host = UNSET
        else:
            host = self.host

        host_machine: None | str | Unset
        if isinstance(self.host_machine, Unset):
            host_machine = UNSET
        else:
            host_machine = self.host_machine

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        failure: None | str | Unset
        if isinstance(self.failure, Unset):
            failure = UNSET
        else:
            failure = self.failure

        last_success_stage: None | str | Unset
        if isinstance(self.last_success_stage, Unset):
            last_success_stage = UNSET
        else:
            last_success_stage = self.last_success_stage

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        crash_signature: None | str | Unset
        if isinstance(self.crash_signature, Unset):
            crash_signature = UNSET
        else:
            crash_signature = self.crash_signature

        peak_memory_mb: int | None | Unset
        if isinstance(self.peak_memory_mb, Unset):
            peak_memory_mb = UNSET
        else:
            peak_memory_mb = self.peak_memory_mb

        cpu_ms: int | None | Unset
        if isinstance(self.cpu_ms, Unset):
            cpu_ms = UNSET
        else:
            cpu_ms = self.cpu_ms

        inputs: list[str] | Unset = UNSET
        if not isinstance(self.inputs, Unset):
            inputs = self.inputs

        outputs: None | str | Unset
        if isinstance(self.outputs, Unset):
            outputs = UNSET
        else:
            outputs = self.outputs

        declared_inputs = self.declared_inputs

        declared_outputs = self.declared_outputs

        milestones: list[str] | Unset = UNSET
        if not isinstance(self.milestones, Unset):
            milestones = self.milestones

        cases: dict[str, Any] | None | Unset
        if isinstance(self.cases, Unset):
            cases = UNSET
        elif isinstance(self.cases, CaseTotals):
            cases = self.cases.to_dict()
        else:
            cases = self.cases

        waits: dict[str, Any] | None | Unset
        if isinstance(self.waits, Unset):
            waits = UNSET
        elif isinstance(self.waits, JobViewWaitsType0):
            waits = self.waits.to_dict()
        else:
            waits = self.waits

        shards_total: int | None | Unset
        if isinstance(self.shards_total, Unset):
            shards_total = UNSET
        else:
            shards_total = self.shards_total

        shards_by_health: dict[str, Any] | Unset = UNSET
        if not isinstance(self.shards_by_health, Unset):
            shards_by_health = self.shards_by_health.to_dict()

        cluster_id: None | str | Unset
        if isinstance(self.cluster_id, Unset):
            cluster_id = UNSET
        else:
            cluster_id = self.cluster_id

        cluster_jobs: list[str] | Unset = UNSET
        if not isinstance(self.cluster_jobs, Unset):
            cluster_jobs = self.cluster_jobs

        cluster_round: int | None | Unset
        if isinstance(self.cluster_round, Unset):
            cluster_round = UNSET
        else:
            cluster_round = self.cluster_round

        node_roles: None | str | Unset
        if isinstance(self.node_roles, Unset):
            node_roles = UNSET
        else:
            node_roles = self.node_roles

        direct_ips: list[str] | Unset = UNSET
        if not isinstance(self.direct_ips, Unset):
            direct_ips = self.direct_ips

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

        deadline_ms: int | None | Unset
        if isinstance(self.deadline_ms, Unset):
            deadline_ms = UNSET
        else:
            deadline_ms = self.deadline_ms

        dispatch_time: None | str | Unset
        if isinstance(self.dispatch_time, Unset):
            dispatch_time = UNSET
        else:
            dispatch_time = self.dispatch_time

        boot_time: None | str | Unset
        if isinstance(self.boot_time, Unset):
            boot_time = UNSET
        else:
            boot_time = self.boot_time

        setup_time: None | str | Unset
        if isinstance(self.setup_time, Unset):
            setup_time = UNSET
        else:
            setup_time = self.setup_time

        wait_peer_time: None | str | Unset
        if isinstance(self.wait_peer_time, Unset):
            wait_peer_time = UNSET
        else:
            wait_peer_time = self.wait_peer_time

        running_time: None | str | Unset
        if isinstance(self.running_time, Unset):
            running_time = UNSET
        else:
            running_time = self.running_time

        post_run_time: None | str | Unset
        if isinstance(self.post_run_time, Unset):
            post_run_time = UNSET
        else:
            post_run_time = self.post_run_time

        manual_check_time: None | str | Unset
        if isinstance(self.manual_check_time, Unset):
            manual_check_time = UNSET
        else:
            manual_check_time = self.manual_check_time

        finish_time: None | str | Unset
        if isinstance(self.finish_time, Unset):
            finish_time = UNSET
        else:
            finish_time = self.finish_time

        cancel_time: None | str | Unset
        if isinstance(self.cancel_time, Unset):
            cancel_time = UNSET
        else:
            cancel_time = self.cancel_time

        abort_time: None | str | Unset
        if isinstance(self.abort_time, Unset):
            abort_time = UNSET
        else:
            abort_time = self.abort_time

        deadline_utc: None | str | Unset
        if isinstance(self.deadline_utc, Unset):
            deadline_utc = UNSET
        else:
            deadline_utc = self.deadline_utc

        start_time: None | str | Unset
        if isinstance(self.start_time, Unset):
            start_time = UNSET
        else:
            start_time = self.start_time

        finish_by_time: None | str | Unset
        if isinstance(self.finish_by_time, Unset):
            finish_by_time = UNSET
        else:
            finish_by_time = self.finish_by_time

        run_seconds: int | None | Unset
        if isinstance(self.run_seconds, Unset):
            run_seconds = UNSET
        else:
            run_seconds = self.run_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "id": id,
                "job_stage": job_stage,
                "job_state": job_state,
                "istage": istage,
                "job_health": job_health,
                "job_data_readiness": job_data_readiness,
                "idata_readiness": idata_readiness,
                "my_account": my_account,
                "queue": queue,
                "priority": priority,
                "suite": suite,
                "testbox": testbox,
                "tbox_group": tbox_group,
                "tbox_type": tbox_type,
                "memory_mb": memory_mb,
                "cpus": cpus,
                "host_keys": host_keys,
                "timeout_seconds": timeout_seconds,
                "attempt": attempt,
                "result_root": result_root,
                "submit_ms": submit_ms,
                "submit_time": submit_time,
            }
        )
        if queue_label is not UNSET:
            field_dict["queue_label"] = queue_label
        if category is not UNSET:
            field_dict["category"] = category
        if params is not UNSET:
            field_dict["params"] = params
        if arch is not UNSET:
            field_dict["arch"] = arch
        if attempts is not UNSET:
            field_dict["attempts"] = attempts
        if submit_id is not UNSET:
            field_dict["submit_id"] = submit_id
        if group_id is not UNSET:
            field_dict["group_id"] = group_id
        if sequence is not UNSET:
            field_dict["sequence"] = sequence
        if held_by is not UNSET:
            field_dict["held_by"] = held_by
        if edits is not UNSET:
            field_dict["edits"] = edits
        if submit_rule is not UNSET:
            field_dict["submit_rule"] = submit_rule
        if rerun_of is not UNSET:
            field_dict["rerun_of"] = rerun_of
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from
        if joined is not UNSET:
            field_dict["joined"] = joined
        if audit_of is not UNSET:
            field_dict["audit_of"] = audit_of
        if host is not UNSET:
            field_dict["host"] = host
        if host_machine is not UNSET:
            field_dict["host_machine"] = host_machine
        if reason is not UNSET:
            field_dict["reason"] = reason
        if failure is not UNSET:
            field_dict["failure"] = failure
        if last_success_stage is not UNSET:
            field_dict["last_success_stage"] = last_success_stage
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if crash_signature is not UNSET:
            field_dict["crash_signature"] = crash_signature
        if peak_memory_mb is not UNSET:
            field_dict["peak_memory_mb"] = peak_memory_mb
        if cpu_ms is not UNSET:
            field_dict["cpu_ms"] = cpu_ms
        if inputs is not UNSET:
            field_dict["inputs"] = inputs
        if outputs is not UNSET:
            field_dict["outputs"] = outputs
        if declared_inputs is not UNSET:
            field_dict["declared_inputs"] = declared_inputs
        if declared_outputs is not UNSET:
            field_dict["declared_outputs"] = declared_outputs
        if milestones is not UNSET:
            field_dict["milestones"] = milestones
        if cases is not UNSET:
            field_dict["cases"] = cases
        if waits is not UNSET:
            field_dict["waits"] = waits
        if shards_total is not UNSET:
            field_dict["shards_total"] = shards_total
        if shards_by_health is not UNSET:
            field_dict["shards_by_health"] = shards_by_health
        if cluster_id is not UNSET:
            field_dict["cluster_id"] = cluster_id
        if cluster_jobs is not UNSET:
            field_dict["cluster_jobs"] = cluster_jobs
        if cluster_round is not UNSET:
            field_dict["cluster_round"] = cluster_round
        if node_roles is not UNSET:
            field_dict["node_roles"] = node_roles
        if direct_ips is not UNSET:
            field_dict["direct_ips"] = direct_ips
        if dispatch_ms is not UNSET:
            field_dict["dispatch_ms"] = dispatch_ms
        if running_ms is not UNSET:
            field_dict["running_ms"] = running_ms
        if end_ms is not UNSET:
            field_dict["end_ms"] = end_ms
        if deadline_ms is not UNSET:
            field_dict["deadline_ms"] = deadline_ms
        if dispatch_time is not UNSET:
            field_dict["dispatch_time"] = dispatch_time
        if boot_time is not UNSET:
            field_dict["boot_time"] = boot_time
        if setup_time is not UNSET:
            field_dict["setup_time"] = setup_time
        if wait_peer_time is not UNSET:
            field_dict["wait_peer_time"] = wait_peer_time
        if running_time is not UNSET:
            field_dict["running_time"] = running_time
        if post_run_time is not UNSET:
            field_dict["post_run_time"] = post_run_time
        if manual_check_time is not UNSET:
            field_dict["manual_check_time"] = manual_check_time
        if finish_time is not UNSET:
            field_dict["finish_time"] = finish_time
        if cancel_time is not UNSET:
            field_dict["cancel_time"] = cancel_time
        if abort_time is not UNSET:
            field_dict["abort_time"] = abort_time
        if deadline_utc is not UNSET:
            field_dict["deadline_utc"] = deadline_utc
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if finish_by_time is not UNSET:
            field_dict["finish_by_time"] = finish_by_time
        if run_seconds is not UNSET:
            field_dict["run_seconds"] = run_seconds

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.attempt_view import AttemptView
        from ..models.case_totals import CaseTotals
        from ..models.job_view_edits import JobViewEdits
        from ..models.job_view_shards_by_health import JobViewShardsByHealth
        from ..models.job_view_waits_type_0 import JobViewWaitsType0
        from ..models.rule_applied import RuleApplied

        d = dict(src_dict)
        job_id = d.pop("job_id")

        id = d.pop("id")

        job_stage = d.pop("job_stage")

        job_state = d.pop("job_state")

        istage = d.pop("istage")

        job_health = d.pop("job_health")

        job_data_readiness = d.pop("job_data_readiness")

        idata_readiness = d.pop("idata_readiness")

        my_account = d.pop("my_account")

        queue = d.pop("queue")

        priority = d.pop("priority")

        suite = d.pop("suite")

        testbox = d.pop("testbox")

        tbox_group = d.pop("tbox_group")

        tbox_type = d.pop("tbox_type")

        memory_mb = d.pop("memory_mb")

        cpus = d.pop("cpus")

        host_keys = cast(list[str], d.pop("host_keys"))

        timeout_seconds = d.pop("timeout_seconds")

        attempt = d.pop("attempt")

        result_root = d.pop("result_root")

        submit_ms = d.pop("submit_ms")

        submit_time = d.pop("submit_time")

        def _parse_queue_label(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue_label = _parse_queue_label(d.pop("queue_label", UNSET))

        def _parse_category(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        category = _parse_category(d.pop("category", UNSET))

        def _parse_params(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        params = _parse_params(d.pop("params", UNSET))

        def _parse_arch(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        arch = _parse_arch(d.pop("arch", UNSET))

        _attempts = d.pop("attempts", UNSET)
        attempts: list[AttemptView] | Unset = UNSET
        if _attempts is not UNSET:
            attempts = []
            for attempts_item_data in _attempts:
                attempts_item = AttemptView.from_dict(attempts_item_data)

                attempts.append(attempts_item)

        def _parse_submit_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        submit_id = _parse_submit_id(d.pop("submit_id", UNSET))

        def _parse_group_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        group_id = _parse_group_id(d.pop("group_id", UNSET))

        def _parse_sequence(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sequence = _parse_sequence(d.pop("sequence", UNSET))

        def _parse_held_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        held_by = _parse_held_by(d.pop("held_by", UNSET))

        _edits = d.pop("edits", UNSET)
        edits: JobViewEdits | Unset
        if isinstance(_edits, Unset):
            edits = UNSET
        else:
            edits = JobViewEdits.from_dict(_edits)

        def _parse_submit_rule(data: object) -> None | RuleApplied | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                submit_rule_type_0 = RuleApplied.from_dict(data)

                return submit_rule_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RuleApplied | Unset, data)

        submit_rule = _parse_submit_rule(d.pop("submit_rule", UNSET))

        def _parse_rerun_of(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        rerun_of = _parse_rerun_of(d.pop("rerun_of", UNSET))

        def _parse_reused_from(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reused_from = _parse_reused_from(d.pop("reused_from", UNSET))

        def _parse_joined(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        joined = _parse_joined(d.pop("joined", UNSET))

        def _parse_audit_of(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        audit_of = _parse_audit_of(d.pop("audit_of", UNSET))

        def _parse_host(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        host = _parse_host(d.pop("host", UNSET))

        def _parse_host_machine(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        host_machine = _parse_host_machine(d.pop("host_machine", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_failure(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure = _parse_failure(d.pop("failure", UNSET))

        def _parse_last_success_stage(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        last_success_stage = _parse_last_success_stage(
            d.pop("last_success_stage", UNSET)
        )

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        def _parse_crash_signature(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        crash_signature = _parse_crash_signature(d.pop("crash_signature", UNSET))

        def _parse_peak_memory_mb(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        peak_memory_mb = _parse_peak_memory_mb(d.pop("peak_memory_mb", UNSET))

        def _parse_cpu_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpu_ms = _parse_cpu_ms(d.pop("cpu_ms", UNSET))

        inputs = cast(list[str], d.pop("inputs", UNSET))

        def _parse_outputs(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        outputs = _parse_outputs(d.pop("outputs", UNSET))

        declared_inputs = d.pop("declared_inputs", UNSET)

        declared_outputs = d.pop("declared_outputs", UNSET)

        milestones = cast(list[str], d.pop("milestones", UNSET))

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

        def _parse_waits(data: object) -> JobViewWaitsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                waits_type_0 = JobViewWaitsType0.from_dict(data)

                return waits_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JobViewWaitsType0 | None | Unset, data)

        waits = _parse_waits(d.pop("waits", UNSET))

        def _parse_shards_total(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shards_total = _parse_shards_total(d.pop("shards_total", UNSET))

        _shards_by_health = d.pop("shards_by_health", UNSET)
        shards_by_health: JobViewShardsByHealth | Unset
        if isinstance(_shards_by_health, Unset):
            shards_by_health = UNSET
        else:
            shards_by_health = JobViewShardsByHealth.from_dict(_shards_by_health)

        def _parse_cluster_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cluster_id = _parse_cluster_id(d.pop("cluster_id", UNSET))

        cluster_jobs = cast(list[str], d.pop("cluster_jobs", UNSET))

        def _parse_cluster_round(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cluster_round = _parse_cluster_round(d.pop("cluster_round", UNSET))

        def _parse_node_roles(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node_roles = _parse_node_roles(d.pop("node_roles", UNSET))

        direct_ips = cast(list[str], d.pop("direct_ips", UNSET))

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

        def _parse_deadline_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        deadline_ms = _parse_deadline_ms(d.pop("deadline_ms", UNSET))

        def _parse_dispatch_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        dispatch_time = _parse_dispatch_time(d.pop("dispatch_time", UNSET))

        def _parse_boot_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        boot_time = _parse_boot_time(d.pop("boot_time", UNSET))

        def _parse_setup_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        setup_time = _parse_setup_time(d.pop("setup_time", UNSET))

        def _parse_wait_peer_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        wait_peer_time = _parse_wait_peer_time(d.pop("wait_peer_time", UNSET))

        def _parse_running_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        running_time = _parse_running_time(d.pop("running_time", UNSET))

        def _parse_post_run_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        post_run_time = _parse_post_run_time(d.pop("post_run_time", UNSET))

        def _parse_manual_check_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        manual_check_time = _parse_manual_check_time(d.pop("manual_check_time", UNSET))

        def _parse_finish_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        finish_time = _parse_finish_time(d.pop("finish_time", UNSET))

        def _parse_cancel_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cancel_time = _parse_cancel_time(d.pop("cancel_time", UNSET))

        def _parse_abort_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        abort_time = _parse_abort_time(d.pop("abort_time", UNSET))

        def _parse_deadline_utc(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        deadline_utc = _parse_deadline_utc(d.pop("deadline_utc", UNSET))

        def _parse_start_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        start_time = _parse_start_time(d.pop("start_time", UNSET))

        def _parse_finish_by_time(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        finish_by_time = _parse_finish_by_time(d.pop("finish_by_time", UNSET))

        def _parse_run_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        run_seconds = _parse_run_seconds(d.pop("run_seconds", UNSET))

        job_view = cls(
            job_id=job_id,
            id=id,
            job_stage=job_stage,
            job_state=job_state,
            istage=istage,
            job_health=job_health,
            job_data_readiness=job_data_readiness,
            idata_readiness=idata_readiness,
            my_account=my_account,
            queue=queue,
            priority=priority,
            suite=suite,
            testbox=testbox,
            tbox_group=tbox_group,
            tbox_type=tbox_type,
            memory_mb=memory_mb,
            cpus=cpus,
            host_keys=host_keys,
            timeout_seconds=timeout_seconds,
            attempt=attempt,
            result_root=result_root,
            submit_ms=submit_ms,
            submit_time=submit_time,
            queue_label=queue_label,
            category=category,
            params=params,
            arch=arch,
            attempts=attempts,
            submit_id=submit_id,
            group_id=group_id,
            sequence=sequence,
            held_by=held_by,
            edits=edits,
            submit_rule=submit_rule,
            rerun_of=rerun_of,
            reused_from=reused_from,
            joined=joined,
            audit_of=audit_of,
            host=host,
            host_machine=host_machine,
            reason=reason,
            failure=failure,
            last_success_stage=last_success_stage,
            exit_code=exit_code,
            crash_signature=crash_signature,
            peak_memory_mb=peak_memory_mb,
            cpu_ms=cpu_ms,
            inputs=inputs,
            outputs=outputs,
            declared_inputs=declared_inputs,
            declared_outputs=declared_outputs,
            milestones=milestones,
            cases=cases,
            waits=waits,
            shards_total=shards_total,
            shards_by_health=shards_by_health,
            cluster_id=cluster_id,
            cluster_jobs=cluster_jobs,
            cluster_round=cluster_round,
            node_roles=node_roles,
            direct_ips=direct_ips,
            dispatch_ms=dispatch_ms,
            running_ms=running_ms,
            end_ms=end_ms,
            deadline_ms=deadline_ms,
            dispatch_time=dispatch_time,
            boot_time=boot_time,
            setup_time=setup_time,
            wait_peer_time=wait_peer_time,
            running_time=running_time,
            post_run_time=post_run_time,
            manual_check_time=manual_check_time,
            finish_time=finish_time,
            cancel_time=cancel_time,
            abort_time=abort_time,
            deadline_utc=deadline_utc,
            start_time=start_time,
            finish_by_time=finish_by_time,
            run_seconds=run_seconds,
        )

        job_view.additional_properties = d
        return job_view

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
