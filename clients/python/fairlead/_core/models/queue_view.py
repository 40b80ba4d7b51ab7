from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.queue_users_type_0 import QueueUsersType0, check_queue_users_type_0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits import Limits


T = TypeVar("T", bound="QueueView")


@_attrs_define
class QueueView:
    """One queue.

    Attributes:
        name (str): Its name.
        priority (int): Class, 0 to 9, higher always first.
        weight (int): Share inside the class.
        paused (bool): Whether nothing of it is dispatched.
        waiting (int): Jobs that wait, as the store counts.
        running (int): Jobs that testboxes have.
        share_permille (int): Its part of the testbox time while busy, in thousandths, among queues of its class with
            work.
        set_ (bool): Whether an admin set its policy.
        background_permille (int | Unset): Dispatches that are kept for it whatever waits in higher classes, in
            thousandths.
        got_1h_permille (int | None | Unset): Its part of the testbox time of the last hour, in thousandths; absent:
            nothing ran.
        got_24h_permille (int | None | Unset): The same of the last 24 hours.
        got_7d_permille (int | None | Unset): The same of the last 7 days; only in snapshots.
        oldest_ready_ms (int | None | Unset): Since when the job that waits longest for a host could run, UTC epoch ms;
            absent: none waits, or nobody counted
            lately. Only in snapshots, counted every tenth second.
        limits (Limits | Unset): The limits of an account or a queue.
        users (list[str] | None | QueueUsersType0 | Unset): Who may submit into it, as an admin said. Absent: nobody
            said so.
        warning (str | Unset): What an admin should look at.
    """

    name: str
    priority: int
    weight: int
    paused: bool
    waiting: int
    running: int
    share_permille: int
    set_: bool
    background_permille: int | Unset = UNSET
    got_1h_permille: int | None | Unset = UNSET
    got_24h_permille: int | None | Unset = UNSET
    got_7d_permille: int | None | Unset = UNSET
    oldest_ready_ms: int | None | Unset = UNSET
    limits: Limits | Unset = UNSET
    users: list[str] | None | QueueUsersType0 | Unset = UNSET
    warning: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        priority = self.priority

        weight = self.weight

        paused = self.paused

        waiting = self.waiting

        running = self.running

        share_permille = self.share_permille

        set_ = self.set_

        background_permille = self.background_permille

        got_1h_permille: int | None | Unset
        if isinstance(self.got_1h_permille, Unset):
            got_1h_permille = UNSET
        else:
            got_1h_permille = self.got_1h_permille

        got_24h_permille: int | None | Unset
        if isinstance(self.got_24h_permille, Unset):
            got_24h_permille = UNSET
        else:
            got_24h_permille = self.got_24h_permille

        got_7d_permille: int | None | Unset
        if isinstance(self.got_7d_permille, Unset):
            got_7d_permille = UNSET
        else:
            got_7d_permille = self.got_7d_permille

        oldest_ready_ms: int | None | Unset
        if isinstance(self.oldest_ready_ms, Unset):
            oldest_ready_ms = UNSET
        else:
            oldest_ready_ms = self.oldest_ready_ms

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        users: list[str] | None | str | Unset
        if isinstance(self.users, Unset):
            users = UNSET
        elif isinstance(self.users, str) or isinstance(self.users, list):
            users = self.users

        else:
            users = self.users

        warning = self.warning

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "priority": priority,
                "weight": weight,
                "paused": paused,
                "waiting": waiting,
                "running": running,
                "share_permille": share_permille,
                "set": set_,
            }
        )
        if background_permille is not UNSET:
            field_dict["background_permille"] = background_permille
        if got_1h_permille is not UNSET:
            field_dict["got_1h_permille"] = got_1h_permille
        if got_24h_permille is not UNSET:
            field_dict["got_24h_permille"] = got_24h_permille
        if got_7d_permille is not UNSET:
            field_dict["got_7d_permille"] = got_7d_permille
        if oldest_ready_ms is not UNSET:
            field_dict["oldest_ready_ms"] = oldest_ready_ms
        if limits is not UNSET:
            field_dict["limits"] = limits
        if users is not UNSET:
            field_dict["users"] = users
        if warning is not UNSET:
            field_dict["warning"] = warning

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.limits import Limits

        d = dict(src_dict)
        name = d.pop("name")

        priority = d.pop("priority")

        weight = d.pop("weight")

        paused = d.pop("paused")

        waiting = d.pop("waiting")

        running = d.pop("running")

        share_permille = d.pop("share_permille")

        set_ = d.pop("set")

        background_permille = d.pop("background_permille", UNSET)

        def _parse_got_1h_permille(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        got_1h_permille = _parse_got_1h_permille(d.pop("got_1h_permille", UNSET))

        def _parse_got_24h_permille(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        got_24h_permille = _parse_got_24h_permille(d.pop("got_24h_permille", UNSET))

        def _parse_got_7d_permille(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        got_7d_permille = _parse_got_7d_permille(d.pop("got_7d_permille", UNSET))

        def _parse_oldest_ready_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        oldest_ready_ms = _parse_oldest_ready_ms(d.pop("oldest_ready_ms", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: Limits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = Limits.from_dict(_limits)

        def _parse_users(data: object) -> list[str] | None | QueueUsersType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_queue_users_type_0 = check_queue_users_type_0(data)

                return componentsschemas_queue_users_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_queue_users_type_1 = cast(list[str], data)

                return componentsschemas_queue_users_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | QueueUsersType0 | Unset, data)

        users = _parse_users(d.pop("users", UNSET))

        warning = d.pop("warning", UNSET)

        queue_view = cls(
            name=name,
            priority=priority,
            weight=weight,
            paused=paused,
            waiting=waiting,
            running=running,
            share_permille=share_permille,
            set_=set_,
            background_permille=background_permille,
            got_1h_permille=got_1h_permille,
            got_24h_permille=got_24h_permille,
            got_7d_permille=got_7d_permille,
            oldest_ready_ms=oldest_ready_ms,
            limits=limits,
            users=users,
            warning=warning,
        )

        queue_view.additional_properties = d
        return queue_view

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
