"""Contains all the data models used in inputs/outputs"""

from .account_change import AccountChange
from .account_view import AccountView
from .answer_format import AnswerFormat
from .attempt_view import AttemptView
from .audit_event import AuditEvent
from .audit_list import AuditList
from .before import Before
from .bounds import Bounds
from .cancel_item import CancelItem
from .cancel_report import CancelReport
from .cancel_request import CancelRequest
from .cancel_request_filter import CancelRequestFilter
from .case_totals import CaseTotals
from .change_request import ChangeRequest
from .change_request_set import ChangeRequestSet
from .closed_view import ClosedView
from .compared import Compared
from .conflict_view import ConflictView
from .constraint_cost import ConstraintCost
from .content_care_request import ContentCareRequest
from .content_checked import ContentChecked
from .content_collected import ContentCollected
from .content_keep import ContentKeep
from .content_list import ContentList
from .content_missing import ContentMissing
from .content_pin import ContentPin
from .content_urls import ContentUrls
from .content_urls_request import ContentUrlsRequest
from .content_view import ContentView
from .edit_view import EditView
from .empties_view import EmptiesView
from .error_body import ErrorBody
from .executor_said import ExecutorSaid
from .explanation import Explanation
from .health_view import HealthView
from .host_close import HostClose
from .host_load import HostLoad
from .host_reserve import HostReserve
from .host_reset import HostReset
from .host_row import HostRow
from .host_verdict import HostVerdict
from .host_view import HostView
from .host_view_facts import HostViewFacts
from .job_answer import JobAnswer
from .job_body import JobBody
from .job_event import JobEvent
from .job_group import JobGroup
from .job_list import JobList
from .job_summary import JobSummary
from .job_view import JobView
from .job_view_edits import JobViewEdits
from .job_view_shards_by_health import JobViewShardsByHealth
from .job_view_waits_type_0 import JobViewWaitsType0
from .jobs_group_by import JobsGroupBy
from .jobs_order import JobsOrder
from .jobs_parts import JobsParts
from .lab_row import LabRow
from .lab_row_ended_24h import LabRowEnded24H
from .lab_row_hosts_by_state import LabRowHostsByState
from .lab_row_stages import LabRowStages
from .leaving_job import LeavingJob
from .limits import Limits
from .limits_change import LimitsChange
from .login import Login
from .missing_chunk import MissingChunk
from .nearest_run import NearestRun
from .nearest_run_differs import NearestRunDiffers
from .notify_change import NotifyChange
from .notify_view import NotifyView
from .outlook import Outlook
from .paused_view import PausedView
from .pool_change import PoolChange
from .pool_decision import PoolDecision
from .pool_machine import PoolMachine
from .pool_machine_view import PoolMachineView
from .pool_view import PoolView
from .preview import Preview
from .preview_failure import PreviewFailure
from .preview_item import PreviewItem
from .preview_request import PreviewRequest
from .preview_request_filter import PreviewRequestFilter
from .preview_request_set import PreviewRequestSet
from .preview_request_weights import PreviewRequestWeights
from .preview_share import PreviewShare
from .queue_change import QueueChange
from .queue_users_type_0 import QueueUsersType0
from .queue_view import QueueView
from .recent_waits import RecentWaits
from .registered_view import RegisteredView
from .replica_row import ReplicaRow
from .rerun_request import RerunRequest
from .rerun_request_set import RerunRequestSet
from .reserved_view import ReservedView
from .retention_change import RetentionChange
from .retention_view import RetentionView
from .reuse_explanation import ReuseExplanation
from .reuse_explanation_parts import ReuseExplanationParts
from .reuse_forgotten import ReuseForgotten
from .reuse_settings import ReuseSettings
from .rule_applied import RuleApplied
from .rule_applied_changes import RuleAppliedChanges
from .run_count import RunCount
from .scaling_settings import ScalingSettings
from .series import Series
from .series_by import SeriesBy
from .series_point import SeriesPoint
from .shard_answer import ShardAnswer
from .shard_counts import ShardCounts
from .signed import Signed
from .snapshot import Snapshot
from .store_problem import StoreProblem
from .store_row import StoreRow
from .submit_item import SubmitItem
from .submit_rule import SubmitRule
from .submit_rule_then import SubmitRuleThen
from .submit_rules import SubmitRules
from .suite_reuse import SuiteReuse
from .tables import Tables
from .tables_hosts import TablesHosts
from .tables_lab import TablesLab
from .tables_queues import TablesQueues
from .tables_replicas import TablesReplicas
from .terminate_request import TerminateRequest
from .test_history import TestHistory
from .timer_list import TimerList
from .timer_run import TimerRun
from .timer_view import TimerView
from .timer_view_job_type_0 import TimerViewJobType0
from .usage_by import UsageBy
from .usage_report import UsageReport
from .usage_row import UsageRow
from .version import Version
from .wait_answer import WaitAnswer
from .wait_answer_waited_jobs import WaitAnswerWaitedJobs
from .wait_answer_waited_jobs_additional_property import (
    WaitAnswerWaitedJobsAdditionalProperty,
)
from .wait_request import WaitRequest
from .wait_request_wait_on import WaitRequestWaitOn
from .wait_request_wait_options import WaitRequestWaitOptions
from .webhook_test import WebhookTest
from .webhook_tested import WebhookTested
from .webhook_view import WebhookView
from .written import Written

__all__ = (
    "AccountChange",
    "AccountView",
    "AnswerFormat",
    "AttemptView",
    "AuditEvent",
    "AuditList",
    "Before",
    "Bounds",
    "CancelItem",
    "CancelReport",
    "CancelRequest",
    "CancelRequestFilter",
    "CaseTotals",
    "ChangeRequest",
    "ChangeRequestSet",
    "ClosedView",
    "Compared",
    "ConflictView",
    "ConstraintCost",
    "ContentCareRequest",
    "ContentChecked",
    "ContentCollected",
    "ContentKeep",
    "ContentList",
    "ContentMissing",
    "ContentPin",
    "ContentUrls",
    "ContentUrlsRequest",
    "ContentView",
    "EditView",
    "EmptiesView",
    "ErrorBody",
    "ExecutorSaid",
    "Explanation",
    "HealthView",
    "HostClose",
    "HostLoad",
    "HostReserve",
    "HostReset",
    "HostRow",
    "HostVerdict",
    "HostView",
    "HostViewFacts",
    "JobAnswer",
    "JobBody",
    "JobEvent",
    "JobGroup",
    "JobList",
    "JobSummary",
    "JobView",
    "JobViewEdits",
    "JobViewShardsByHealth",
    "JobViewWaitsType0",
    "JobsGroupBy",
    "JobsOrder",
    "JobsParts",
    "LabRow",
    "LabRowEnded24H",
    "LabRowHostsByState",
    "LabRowStages",
    "LeavingJob",
    "Limits",
    "LimitsChange",
    "Login",
    "MissingChunk",
    "NearestRun",
    "NearestRunDiffers",
    "NotifyChange",
    "NotifyView",
    "Outlook",
    "PausedView",
    "PoolChange",
    "PoolDecision",
    "PoolMachine",
    "PoolMachineView",
    "PoolView",
    "Preview",
    "PreviewFailure",
    "PreviewItem",
    "PreviewRequest",
    "PreviewRequestFilter",
    "PreviewRequestSet",
    "PreviewRequestWeights",
    "PreviewShare",
    "QueueChange",
    "QueueUsersType0",
    "QueueView",
    "RecentWaits",
    "RegisteredView",
    "ReplicaRow",
    "RerunRequest",
    "RerunRequestSet",
    "ReservedView",
    "RetentionChange",
    "RetentionView",
    "ReuseExplanation",
    "ReuseExplanationParts",
    "ReuseForgotten",
    "ReuseSettings",
    "RuleApplied",
    "RuleAppliedChanges",
    "RunCount",
    "ScalingSettings",
    "Series",
    "SeriesBy",
    "SeriesPoint",
    "ShardAnswer",
    "ShardCounts",
    "Signed",
    "Snapshot",
    "StoreProblem",
    "StoreRow",
    "SubmitItem",
    "SubmitRule",
    "SubmitRuleThen",
    "SubmitRules",
    "SuiteReuse",
    "Tables",
    "TablesHosts",
    "TablesLab",
    "TablesQueues",
    "TablesReplicas",
    "TerminateRequest",
    "TestHistory",
    "TimerList",
    "TimerRun",
    "TimerView",
    "TimerViewJobType0",
    "UsageBy",
    "UsageReport",
    "UsageRow",
    "Version",
    "WaitAnswer",
    "WaitAnswerWaitedJobs",
    "WaitAnswerWaitedJobsAdditionalProperty",
    "WaitRequest",
    "WaitRequestWaitOn",
    "WaitRequestWaitOptions",
    "WebhookTest",
    "WebhookTested",
    "WebhookView",
    "Written",
)
