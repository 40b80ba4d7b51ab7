"""The types of answers. The reference of the HTTP interface (docs/api-reference.md) says what each field means.

A field that may be absent is `UNSET` then. Units are in the names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decode import UNSET, Answer, Unset


@dataclass(kw_only=True)
class Bounds(Answer):
    """A limit, 0 to 1,000,000,000. Past the soft one jobs go behind others, at the hard one they stop. None: no limit."""

    soft: int | None | Unset = UNSET
    hard: int | None | Unset = UNSET


@dataclass(kw_only=True)
class Limits(Answer):
    """The limits of an account or a queue."""

    waiting: Bounds | Unset = UNSET
    running: Bounds | Unset = UNSET
    hours: Bounds | Unset = UNSET
    shards: Bounds | Unset = UNSET
    content_mb: Bounds | Unset = UNSET
    content_day_mb: Bounds | Unset = UNSET
    results_mb: Bounds | Unset = UNSET


@dataclass(kw_only=True)
class NotifyView(Answer):
    """Who is told of the jobs of an account."""

    url: str
    on: list[str]
    kind: str


@dataclass(kw_only=True)
class TokenView(Answer):
    """A token of an account, without itself."""

    id: str
    made_ms: int
    last_used_ms: int
    ends_ms: int


@dataclass(kw_only=True)
class AccountView(Answer):
    """One account. The token is shown only in the answer that made it."""

    my_account: str
    role: str
    hosts: list[str] | Unset = UNSET
    groups: list[str] | Unset = UNSET
    hint: str | Unset = UNSET
    vip: bool
    share_results: bool | Unset = UNSET
    limits: Limits | Unset = UNSET
    results_used_mb: int | None | Unset = UNSET
    notify: NotifyView | None | Unset = UNSET
    tokens: list[TokenView] | Unset = UNSET
    my_token: str | None | Unset = UNSET


@dataclass(kw_only=True)
class QueueView(Answer):
    """One queue."""

    name: str
    priority: int
    weight: int
    paused: bool
    background_permille: int | Unset = UNSET
    waiting: int
    running: int
    share_permille: int
    got_1h_permille: int | None | Unset = UNSET
    got_24h_permille: int | None | Unset = UNSET
    got_7d_permille: int | None | Unset = UNSET
    oldest_ready_ms: int | None | Unset = UNSET
    set_: bool
    limits: Limits | Unset = UNSET
    users: str | list[str] | None | Unset = UNSET
    warning: str | Unset = UNSET


@dataclass(kw_only=True)
class ClosedView(Answer):
    """Why a host gets no new job."""

    how: str
    reason: str
    by: str
    at_ms: int
    check_job: str | None | Unset = UNSET


@dataclass(kw_only=True)
class ReservedView(Answer):
    """For whom a host is kept."""

    accounts: list[str]
    until_ms: int
    reason: str
    by: str
    at_ms: int


@dataclass(kw_only=True)
class ExecutorSaid(Answer):
    """An executor of a host: a program that its agent runs jobs in."""

    name: str
    version: str | Unset = UNSET
    problem: str | Unset = UNSET


@dataclass(kw_only=True)
class HostLoad(Answer):
    """How loaded a host is, as its agent measured it a moment ago."""

    memory_total_mb: int
    memory_available_mb: int
    unpromised_memory_mb: int
    cpu_pressure_percent: int | None | Unset = UNSET
    memory_pressure_percent: int | None | Unset = UNSET
    jobs: int
    loaded: bool


@dataclass(kw_only=True)
class RegisteredView(Answer):
    """What a registration says of a host."""

    tags: list[str]
    devices: list[str]


@dataclass(kw_only=True)
class ConflictView(Answer):
    """An agent that is refused because another one has the host's name."""

    instance: str
    at_ms: int


@dataclass(kw_only=True)
class LeavingJob(Answer):
    """A job on a host that gets no new one."""

    job_id: str
    suite: str
    since_ms: int
    expected_ms: int | None | Unset = UNSET
    latest_ms: int | None | Unset = UNSET


@dataclass(kw_only=True)
class EmptiesView(Answer):
    """When a closed host is empty."""

    jobs: list[LeavingJob]
    expected_ms: int | None | Unset = UNSET
    latest_ms: int | None | Unset = UNSET
    words: str


@dataclass(kw_only=True)
class HostView(Answer):
    """One host."""

    hostname: str
    kinds: list[str]
    arch: str
    group: str
    memory_mb: int
    free_memory_mb: int
    cpus: int | None | Unset = UNSET
    free_cpus: int | None | Unset = UNSET
    tags: list[str]
    devices: list[str]
    state: str
    closed: ClosedView | None | Unset = UNSET
    reserved: ReservedView | None | Unset = UNSET
    isolation: str | Unset = UNSET
    executors: list[ExecutorSaid] | Unset = UNSET
    load: HostLoad | None | Unset = UNSET
    facts: dict[str, list[str]] | Unset = UNSET
    registered: RegisteredView | None | Unset = UNSET
    conflict: ConflictView | None | Unset = UNSET
    seen_ms: int
    jobs: list[str]
    why_idle: list[str]
    empties: EmptiesView | None | Unset = UNSET


@dataclass(kw_only=True)
class AttemptView(Answer):
    """An earlier try of a job."""

    attempt: int
    host: str
    host_machine: str
    job_stage: str
    job_health: str
    failure: str | None
    dispatch_ms: int
    end_ms: int
    dispatch_time: str
    end_time: str
    reason: str


@dataclass(kw_only=True)
class EditView(Answer):
    """A field that was changed while the job waited."""

    submitted: Any
    now: Any


@dataclass(kw_only=True)
class RuleApplied(Answer):
    """The rule that a job met, and what it changed."""

    rule: str
    changes: dict[str, EditView] | Unset = UNSET


@dataclass(kw_only=True)
class CaseTotals(Answer):
    """How many test cases had which outcome, and the first that failed."""

    passed: int
    failed: int
    skipped: int
    first_failures: list[str] | Unset = UNSET


@dataclass(kw_only=True)
class JobView(Answer):
    """A job: the fields of the job file, and over them what the scheduler knows. Times in words are UTC."""

    job_id: str
    id: str
    job_stage: str
    job_state: str
    istage: int
    job_health: str
    job_data_readiness: str
    idata_readiness: int
    my_account: str
    queue: str
    queue_label: str | None | Unset = UNSET
    priority: int
    suite: str
    category: str | None | Unset = UNSET
    params: str | None | Unset = UNSET
    testbox: str
    tbox_group: str
    tbox_type: str
    arch: str | None | Unset = UNSET
    memory_mb: int
    cpus: int
    host_keys: list[str]
    timeout_seconds: int
    attempt: int
    attempts: list[AttemptView] | Unset = UNSET
    result_root: str
    submit_id: str | None | Unset = UNSET
    group_id: str | None | Unset = UNSET
    sequence: str | None | Unset = UNSET
    held_by: str | None | Unset = UNSET
    edits: dict[str, EditView] | Unset = UNSET
    submit_rule: RuleApplied | None | Unset = UNSET
    rerun_of: str | None | Unset = UNSET
    reused_from: str | None | Unset = UNSET
    joined: str | None | Unset = UNSET
    audit_of: str | None | Unset = UNSET
    host: str | None | Unset = UNSET
    host_machine: str | None | Unset = UNSET
    reason: str | None | Unset = UNSET
    failure: str | None | Unset = UNSET
    last_success_stage: str | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    crash_signature: str | None | Unset = UNSET
    peak_memory_mb: int | None | Unset = UNSET
    cpu_ms: int | None | Unset = UNSET
    result_bytes: int | None | Unset = UNSET
    inputs: list[str] | Unset = UNSET
    outputs: str | None | Unset = UNSET
    declared_inputs: Any | Unset = UNSET
    declared_outputs: Any | Unset = UNSET
    milestones: list[str] | Unset = UNSET
    cases: CaseTotals | None | Unset = UNSET
    waits: dict[str, Any] | None | Unset = UNSET
    shards_total: int | None | Unset = UNSET
    shards_by_health: dict[str, int] | Unset = UNSET
    cluster_id: str | None | Unset = UNSET
    cluster_jobs: list[str] | Unset = UNSET
    cluster_round: int | None | Unset = UNSET
    node_roles: str | None | Unset = UNSET
    direct_ips: list[str] | Unset = UNSET
    submit_ms: int
    dispatch_ms: int | None | Unset = UNSET
    running_ms: int | None | Unset = UNSET
    end_ms: int | None | Unset = UNSET
    deadline_ms: int | None | Unset = UNSET
    submit_time: str
    dispatch_time: str | None | Unset = UNSET
    boot_time: str | None | Unset = UNSET
    setup_time: str | None | Unset = UNSET
    wait_peer_time: str | None | Unset = UNSET
    running_time: str | None | Unset = UNSET
    post_run_time: str | None | Unset = UNSET
    manual_check_time: str | None | Unset = UNSET
    finish_time: str | None | Unset = UNSET
    cancel_time: str | None | Unset = UNSET
    abort_time: str | None | Unset = UNSET
    deadline_utc: str | None | Unset = UNSET
    start_time: str | None | Unset = UNSET
    finish_by_time: str | None | Unset = UNSET
    run_seconds: int | None | Unset = UNSET


@dataclass(kw_only=True)
class ShardCounts(Answer):
    """How far the shards of a job are."""

    count: int
    running: int
    over: int
    failed: int
    reused: int | Unset = UNSET


@dataclass(kw_only=True)
class ShardAnswer(Answer):
    """One shard in the answer of its job."""

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


@dataclass(kw_only=True)
class JobAnswer(Answer):
    """The answer of a job, `GET /r/ID`. It is there before anything ran."""

    job_id: str
    over: bool
    job_stage: str
    job_health: str
    reason: str | Unset = UNSET
    reused_from: str | Unset = UNSET
    suite: str
    my_account: str
    submit_ms: int
    end_ms: int | None | Unset = UNSET
    cases: CaseTotals | None | Unset = UNSET
    group: str | Unset = UNSET
    open_: bool | Unset = UNSET
    shards: ShardCounts | None | Unset = UNSET
    parts: list[ShardAnswer] | Unset = UNSET
    result_root: str | Unset = UNSET


@dataclass(kw_only=True)
class Before(Answer):
    """Jobs that wait before a job. Jobs of queues that are paused or at a limit do not count."""

    higher_queues: int
    higher_jobs: int
    queues: int
    queues_jobs: int
    accounts: int
    accounts_jobs: int
    own_jobs: int
    exact: bool
    words: str


@dataclass(kw_only=True)
class ConstraintCost(Answer):
    """A constraint of a job, and how many more known hosts there would be without it alone."""

    constraint: str
    more_able: int
    more_ready: int
    words: str


@dataclass(kw_only=True)
class RunCount(Answer):
    """Jobs that ran and ended by themselves."""

    passed: int
    failed: int


@dataclass(kw_only=True)
class Compared(Answer):
    """How an ended job compares with others of the last days."""

    days: int
    suite_elsewhere: RunCount
    suite_here: RunCount
    others_here: RunCount
    words: str


@dataclass(kw_only=True)
class HostVerdict(Answer):
    """One host, as seen from one job."""

    hostname: str
    could: bool
    lacks: list[str]


@dataclass(kw_only=True)
class Explanation(Answer):
    """Why a job waits, or where it is."""

    job_id: str
    job_stage: str
    summary: str
    reasons: list[str]
    before: Before | None | Unset = UNSET
    costs: list[ConstraintCost] | Unset = UNSET
    compared: Compared | None | Unset = UNSET
    hosts: list[HostVerdict]
    hosts_more: int


@dataclass(kw_only=True)
class SubmitItem(Answer):
    """What became of one job of a submit. Its id is "0" if it was refused."""

    job_id: str
    message: str
    code: str | Unset = UNSET
    hint: str | Unset = UNSET
    warnings: list[str] | Unset = UNSET
    submit_id: str | Unset = UNSET
    result_root: str | Unset = UNSET


@dataclass(kw_only=True)
class JobState(Answer):
    """A job in a list, or in an event of a submit."""

    job_id: str
    job_stage: str
    job_health: str
    attempt: int
    host: str | Unset = UNSET
    reason: str | Unset = UNSET
    params: str | Unset = UNSET
    result_root: str | Unset = UNSET
    exit_code: int | None | Unset = UNSET


@dataclass(kw_only=True)
class JobList(Answer):
    """A page of a list of jobs."""

    jobs: list[JobState]
    next_: str | None | Unset = UNSET
