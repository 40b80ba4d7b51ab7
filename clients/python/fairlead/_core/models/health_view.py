from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.store_problem import StoreProblem


T = TypeVar("T", bound="HealthView")


@_attrs_define
class HealthView:
    """How a replica is.

    Attributes:
        well (bool): Whether it takes requests, and its store answers and takes writes. Default: False.
        replica (str): The replica's name. Default: ''.
        version (str): Its version. Default: ''.
        time_ms (int): Its clock, UTC epoch ms. Default: 0.
        store (str): The store: `embedded` or `elasticsearch`, with version. Default: ''.
        peers (list[str]): The other replicas that it hears of.
        stopping (bool): Whether it is stopping: it takes no new request. Default: False.
        reads (None | StoreProblem | Unset): Why the store answers no reads; absent: it does.
        writes (None | StoreProblem | Unset): Why the store takes no writes; absent: it does.
        content (None | StoreProblem | Unset): What is wrong with the content store; absent: nothing. Jobs without
            inputs and outputs run all the same.
    """

    peers: list[str]
    well: bool = False
    replica: str = ""
    version: str = ""
    time_ms: int = 0
    store: str = ""
    stopping: bool = False
    reads: None | StoreProblem | Unset = UNSET
    writes: None | StoreProblem | Unset = UNSET
    content: None | StoreProblem | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.store_problem import StoreProblem

        well = self.well

        replica = self.replica

        version = self.version

        time_ms = self.time_ms

        store = self.store

        peers = self.peers

        stopping = self.stopping

        reads: dict[str, Any] | None | Unset
        if isinstance(self.reads, Unset):
            reads = UNSET
        elif isinstance(self.reads, StoreProblem):
            reads = self.reads.to_dict()
        else:
            reads = self.reads

        writes: dict[str, Any] | None | Unset
        if isinstance(self.writes, Unset):
            writes = UNSET
        elif isinstance(self.writes, StoreProblem):
            writes = self.writes.to_dict()
        else:
            writes = self.writes

        content: dict[str, Any] | None | Unset
        if isinstance(self.content, Unset):
            content = UNSET
        elif isinstance(self.content, StoreProblem):
            content = self.content.to_dict()
        else:
            content = self.content

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "well": well,
                "replica": replica,
                "version": version,
                "time_ms": time_ms,
                "store": store,
                "peers": peers,
                "stopping": stopping,
            }
        )
        if reads is not UNSET:
            field_dict["reads"] = reads
        if writes is not UNSET:
            field_dict["writes"] = writes
        if content is not UNSET:
            field_dict["content"] = content

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.store_problem import StoreProblem

        d = dict(src_dict)
        well = d.pop("well")

        replica = d.pop("replica")

        version = d.pop("version")

        time_ms = d.pop("time_ms")

        store = d.pop("store")

        peers = cast(list[str], d.pop("peers"))

        stopping = d.pop("stopping")

        def _parse_reads(data: object) -> None | StoreProblem | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                reads_type_0 = StoreProblem.from_dict(data)

                return reads_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoreProblem | Unset, data)

        reads = _parse_reads(d.pop("reads", UNSET))

        def _parse_writes(data: object) -> None | StoreProblem | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                writes_type_0 = StoreProblem.from_dict(data)

                return writes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoreProblem | Unset, data)

        writes = _parse_writes(d.pop("writes", UNSET))

        def _parse_content(data: object) -> None | StoreProblem | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                content_type_0 = StoreProblem.from_dict(data)

                return content_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoreProblem | Unset, data)

        content = _parse_content(d.pop("content", UNSET))

        health_view = cls(
            well=well,
            replica=replica,
            version=version,
            time_ms=time_ms,
            store=store,
            peers=peers,
            stopping=stopping,
            reads=reads,
            writes=writes,
            content=content,
        )

        health_view.additional_properties = d
        return health_view

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
