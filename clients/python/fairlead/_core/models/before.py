from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Before")


@_attrs_define
class Before:
    """Jobs that wait before a job. Jobs of queues that are paused or at a limit do not count.

    Attributes:
        higher_queues (int): Queues of higher priority that have waiting jobs. Default: 0.
        higher_jobs (int): Waiting jobs of these. Default: 0.
        queues (int): Queues of the same priority whose turn comes first. Default: 0.
        queues_jobs (int): Waiting jobs of these. Queues take turns, so not all of them go first. Default: 0.
        accounts (int): Accounts of its queue, or labels of its account, whose turn comes first. Default: 0.
        accounts_jobs (int): Waiting jobs of these. They take turns, too. Default: 0.
        own_jobs (int): Jobs of its own account in its queue that come first. Default: 0.
        exact (bool): Whether the replica knows all waiting jobs. Else jobs of queues are as the store counted them
            last, and
            `accounts_jobs` is the least that there are. Default: False.
        words (str): The same in one sentence. Default: ''.
    """

    higher_queues: int = 0
    higher_jobs: int = 0
    queues: int = 0
    queues_jobs: int = 0
    accounts: int = 0
    accounts_jobs: int = 0
    own_jobs: int = 0
    exact: bool = False
    words: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        higher_queues = self.higher_queues

        higher_jobs = self.higher_jobs

        queues = self.queues

        queues_jobs = self.queues_jobs

        accounts = self.accounts

        accounts_jobs = self.accounts_jobs

        own_jobs = self.own_jobs

        exact = self.exact

        words = self.words

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "higher_queues": higher_queues,
                "higher_jobs": higher_jobs,
                "queues": queues,
                "queues_jobs": queues_jobs,
                "accounts": accounts,
                "accounts_jobs": accounts_jobs,
                "own_jobs": own_jobs,
                "exact": exact,
                "words": words,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        higher_queues = d.pop("higher_queues")

        higher_jobs = d.pop("higher_jobs")

        queues = d.pop("queues")

        queues_jobs = d.pop("queues_jobs")

        accounts = d.pop("accounts")

        accounts_jobs = d.pop("accounts_jobs")

        own_jobs = d.pop("own_jobs")

        exact = d.pop("exact")

        words = d.pop("words")

        before = cls(
            higher_queues=higher_queues,
            higher_jobs=higher_jobs,
            queues=queues,
            queues_jobs=queues_jobs,
            accounts=accounts,
            accounts_jobs=accounts_jobs,
            own_jobs=own_jobs,
            exact=exact,
            words=words,
        )

        before.additional_properties = d
        return before

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
