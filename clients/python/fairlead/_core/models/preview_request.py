from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Self,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.preview_request_filter import PreviewRequestFilter
    from ..models.preview_request_set import PreviewRequestSet
    from ..models.preview_request_weights import PreviewRequestWeights


T = TypeVar("T", bound="PreviewRequest")


@_attrs_define
class PreviewRequest:
    """An action, and on what.

    Attributes:
        action (Literal['cancel'] | Literal['change'] | Literal['cordon'] | Literal['drain'] | Literal['hold'] |
            Literal['pause_lab'] | Literal['pause_queue'] | Literal['release'] | Literal['rerun'] | Literal['reserve'] |
            Literal['resume_lab'] | Literal['resume_queue'] | Literal['terminate'] | Literal['uncordon'] |
            Literal['unreserve'] | Literal['weights'] | Unset): What is to be done.
        jobs (list[str] | Unset): On these jobs, at most 10,000.
        filter_ (PreviewRequestFilter | Unset): Or on all jobs that this filter finds, at most 10,000: names and values
            as in the query of a list of jobs.
        hosts (list[str] | Unset): On these hosts, at most 10,000.
        queue (str | Unset): On this queue.
        set_ (PreviewRequestSet | Unset): New values of fields of jobs: `queue`, `priority` and others that a waiting
            job may change.
        weights (PreviewRequestWeights | Unset): New weights of queues, 1 to 10,000.
        accounts (list[str] | Unset): For whom hosts are kept.
        hours (int | Unset): For how long hosts are kept, hours, at least 1.
        reason (str | Unset): Why, in the words of who asks.
    """

    action: (
        Literal[
            "cancel",
            "change",
            "cordon",
            "drain",
            "hold",
            "pause_lab",
            "pause_queue",
            "release",
            "rerun",
            "reserve",
            "resume_lab",
            "resume_queue",
            "terminate",
            "uncordon",
            "unreserve",
            "weights",
        ]
        | Unset
    ) = UNSET
    jobs: list[str] | Unset = UNSET
    filter_: PreviewRequestFilter | Unset = UNSET
    hosts: list[str] | Unset = UNSET
    queue: str | Unset = UNSET
    set_: PreviewRequestSet | Unset = UNSET
    weights: PreviewRequestWeights | Unset = UNSET
    accounts: list[str] | Unset = UNSET
    hours: int | Unset = UNSET
    reason: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        action: (
            Literal[
                "cancel",
                "change",
                "cordon",
                "drain",
                "hold",
                "pause_lab",
                "pause_queue",
                "release",
                "rerun",
                "reserve",
                "resume_lab",
                "resume_queue",
                "terminate",
                "uncordon",
                "unreserve",
                "weights",
            ]
            | Unset
        )
        if isinstance(self.action, Unset):
            action = UNSET
        else:
            action = self.action

        jobs: list[str] | Unset = UNSET
        if not isinstance(self.jobs, Unset):
            jobs = self.jobs

        filter_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.filter_, Unset):
            filter_ = self.filter_.to_dict()

        hosts: list[str] | Unset = UNSET
        if not isinstance(self.hosts, Unset):
            hosts = self.hosts

        queue = self.queue

        set_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.set_, Unset):
            set_ = self.set_.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        accounts: list[str] | Unset = UNSET
        if not isinstance(self.accounts, Unset):
            accounts = self.accounts

        hours = self.hours

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if action is not UNSET:
            field_dict["action"] = action
        if jobs is not UNSET:
            field_dict["jobs"] = jobs
        if filter_ is not UNSET:
            field_dict["filter"] = filter_
        if hosts is not UNSET:
            field_dict["hosts"] = hosts
        if queue is not UNSET:
            field_dict["queue"] = queue
        if set_ is not UNSET:
            field_dict["set"] = set_
        if weights is not UNSET:
            field_dict["weights"] = weights
        if accounts is not UNSET:
            field_dict["accounts"] = accounts
        if hours is not UNSET:
            field_dict["hours"] = hours
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.preview_request_filter import PreviewRequestFilter
        from ..models.preview_request_set import PreviewRequestSet
        from ..models.preview_request_weights import PreviewRequestWeights

        d = dict(src_dict)

        def _parse_action(
            data: object,
        ) -> (
            Literal[
                "cancel",
                "change",
                "cordon",
                "drain",
                "hold",
                "pause_lab",
                "pause_queue",
                "release",
                "rerun",
                "reserve",
                "resume_lab",
                "resume_queue",
                "terminate",
                "uncordon",
                "unreserve",
                "weights",
            ]
            | Unset
        ):
            if isinstance(data, Unset):
                return data
            componentsschemas_bulk_action_type_0 = cast(Literal["cancel"], data)
            if componentsschemas_bulk_action_type_0 != "cancel":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_0 must match const 'cancel', got '{componentsschemas_bulk_action_type_0}'"
                )
            return componentsschemas_bulk_action_type_0
            componentsschemas_bulk_action_type_1 = cast(Literal["terminate"], data)
            if componentsschemas_bulk_action_type_1 != "terminate":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_1 must match const 'terminate', got '{componentsschemas_bulk_action_type_1}'"
                )
            return componentsschemas_bulk_action_type_1
            componentsschemas_bulk_action_type_2 = cast(Literal["rerun"], data)
            if componentsschemas_bulk_action_type_2 != "rerun":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_2 must match const 'rerun', got '{componentsschemas_bulk_action_type_2}'"
                )
            return componentsschemas_bulk_action_type_2
            componentsschemas_bulk_action_type_3 = cast(Literal["change"], data)
            if componentsschemas_bulk_action_type_3 != "change":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_3 must match const 'change', got '{componentsschemas_bulk_action_type_3}'"
                )
            return componentsschemas_bulk_action_type_3
            componentsschemas_bulk_action_type_4 = cast(Literal["hold"], data)
            if componentsschemas_bulk_action_type_4 != "hold":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_4 must match const 'hold', got '{componentsschemas_bulk_action_type_4}'"
                )
            return componentsschemas_bulk_action_type_4
            componentsschemas_bulk_action_type_5 = cast(Literal["release"], data)
            if componentsschemas_bulk_action_type_5 != "release":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_5 must match const 'release', got '{componentsschemas_bulk_action_type_5}'"
                )
            return componentsschemas_bulk_action_type_5
            componentsschemas_bulk_action_type_6 = cast(Literal["cordon"], data)
            if componentsschemas_bulk_action_type_6 != "cordon":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_6 must match const 'cordon', got '{componentsschemas_bulk_action_type_6}'"
                )
            return componentsschemas_bulk_action_type_6
            componentsschemas_bulk_action_type_7 = cast(Literal["drain"], data)
            if componentsschemas_bulk_action_type_7 != "drain":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_7 must match const 'drain', got '{componentsschemas_bulk_action_type_7}'"
                )
            return componentsschemas_bulk_action_type_7
            componentsschemas_bulk_action_type_8 = cast(Literal["uncordon"], data)
            if componentsschemas_bulk_action_type_8 != "uncordon":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_8 must match const 'uncordon', got '{componentsschemas_bulk_action_type_8}'"
                )
            return componentsschemas_bulk_action_type_8
            componentsschemas_bulk_action_type_9 = cast(Literal["reserve"], data)
            if componentsschemas_bulk_action_type_9 != "reserve":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_9 must match const 'reserve', got '{componentsschemas_bulk_action_type_9}'"
                )
            return componentsschemas_bulk_action_type_9
            componentsschemas_bulk_action_type_10 = cast(Literal["unreserve"], data)
            if componentsschemas_bulk_action_type_10 != "unreserve":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_10 must match const 'unreserve', got '{componentsschemas_bulk_action_type_10}'"
                )
            return componentsschemas_bulk_action_type_10
            componentsschemas_bulk_action_type_11 = cast(Literal["pause_queue"], data)
            if componentsschemas_bulk_action_type_11 != "pause_queue":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_11 must match const 'pause_queue', got '{componentsschemas_bulk_action_type_11}'"
                )
            return componentsschemas_bulk_action_type_11
            componentsschemas_bulk_action_type_12 = cast(Literal["resume_queue"], data)
            if componentsschemas_bulk_action_type_12 != "resume_queue":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_12 must match const 'resume_queue', got '{componentsschemas_bulk_action_type_12}'"
                )
            return componentsschemas_bulk_action_type_12
            componentsschemas_bulk_action_type_13 = cast(Literal["weights"], data)
            if componentsschemas_bulk_action_type_13 != "weights":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_13 must match const 'weights', got '{componentsschemas_bulk_action_type_13}'"
                )
            return componentsschemas_bulk_action_type_13
            componentsschemas_bulk_action_type_14 = cast(Literal["pause_lab"], data)
            if componentsschemas_bulk_action_type_14 != "pause_lab":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_14 must match const 'pause_lab', got '{componentsschemas_bulk_action_type_14}'"
                )
            return componentsschemas_bulk_action_type_14
            componentsschemas_bulk_action_type_15 = cast(Literal["resume_lab"], data)
            if componentsschemas_bulk_action_type_15 != "resume_lab":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_15 must match const 'resume_lab', got '{componentsschemas_bulk_action_type_15}'"
                )
            return componentsschemas_bulk_action_type_15

        action = _parse_action(d.pop("action", UNSET))

        jobs = cast(list[str], d.pop("jobs", UNSET))

        _filter_ = d.pop("filter", UNSET)
        filter_: PreviewRequestFilter | Unset
        if isinstance(_filter_, Unset):
            filter_ = UNSET
        else:
            filter_ = PreviewRequestFilter.from_dict(_filter_)

        hosts = cast(list[str], d.pop("hosts", UNSET))

        queue = d.pop("queue", UNSET)

        _set_ = d.pop("set", UNSET)
        set_: PreviewRequestSet | Unset
        if isinstance(_set_, Unset):
            set_ = UNSET
        else:
            set_ = PreviewRequestSet.from_dict(_set_)

        _weights = d.pop("weights", UNSET)
        weights: PreviewRequestWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = PreviewRequestWeights.from_dict(_weights)

        accounts = cast(list[str], d.pop("accounts", UNSET))

        hours = d.pop("hours", UNSET)

        reason = d.pop("reason", UNSET)

        preview_request = cls(
            action=action,
            jobs=jobs,
            filter_=filter_,
            hosts=hosts,
            queue=queue,
            set_=set_,
            weights=weights,
            accounts=accounts,
            hours=hours,
            reason=reason,
        )

        return preview_request
