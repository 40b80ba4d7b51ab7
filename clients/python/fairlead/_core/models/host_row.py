from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.closed_view import ClosedView
    from ..models.reserved_view import ReservedView


T = TypeVar("T", bound="HostRow")


@_attrs_define
class HostRow:
    """A host in short.

    Attributes:
        group (str): Its group. Default: ''.
        state (str): As [`crate::HostView::state`]. Default: ''.
        kinds (list[str]): Kinds of testboxes that it offers.
        arch (str): Its architecture. Default: ''.
        memory_mb (int): Memory of the whole host, MB. Default: 0.
        free_memory_mb (int): Memory free as last said, MB. Default: 0.
        jobs (list[str]): Jobs that it has.
        cpus (int | None | Unset): CPUs of the whole host; absent: it did not say.
        free_cpus (int | None | Unset): CPUs free as last said.
        lost_ms (int | None | Unset): Of a silent or off host: when it was last heard of, UTC epoch ms.
        closed (ClosedView | None | Unset): Why it gets no new job, if it is closed.
        reserved (None | ReservedView | Unset): For whom it is kept, if it is.
        loaded (bool | Unset): Whether it is loaded, so that calm hosts get jobs first.
    """

    kinds: list[str]
    jobs: list[str]
    group: str = ""
    state: str = ""
    arch: str = ""
    memory_mb: int = 0
    free_memory_mb: int = 0
    cpus: int | None | Unset = UNSET
    free_cpus: int | None | Unset = UNSET
    lost_ms: int | None | Unset = UNSET
    closed: ClosedView | None | Unset = UNSET
    reserved: None | ReservedView | Unset = UNSET
    loaded: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.closed_view import ClosedView
        from ..models.reserved_view import ReservedView

        group = self.group

        state = self.state

        kinds = self.kinds

        arch = self.arch

        memory_mb = self.memory_mb

        free_memory_mb = self.free_memory_mb

        jobs = self.jobs

        cpus: int | None | Unset
        if isinstance(self.cpus, Unset):
            cpus = UNSET
        else:
            cpus = self.cpus

        free_cpus: int | None | Unset
        if isinstance(self.free_cpus, Unset):
            free_cpus = UNSET
        else:
            free_cpus = self.free_cpus

        lost_ms: int | None | Unset
        if isinstance(self.lost_ms, Unset):
            lost_ms = UNSET
        else:
            lost_ms = self.lost_ms

        closed: dict[str, Any] | None | Unset
        if isinstance(self.closed, Unset):
            closed = UNSET
        elif isinstance(self.closed, ClosedView):
            closed = self.closed.to_dict()
        else:
            closed = self.closed

        reserved: dict[str, Any] | None | Unset
        if isinstance(self.reserved, Unset):
            reserved = UNSET
        elif isinstance(self.reserved, ReservedView):
            reserved = self.reserved.to_dict()
        else:
            reserved = self.reserved

        loaded = self.loaded

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "group": group,
                "state": state,
                "kinds": kinds,
                "arch": arch,
                "memory_mb": memory_mb,
                "free_memory_mb": free_memory_mb,
                "jobs": jobs,
            }
        )
        if cpus is not UNSET:
            field_dict["cpus"] = cpus
        if free_cpus is not UNSET:
            field_dict["free_cpus"] = free_cpus
        if lost_ms is not UNSET:
            field_dict["lost_ms"] = lost_ms
        if closed is not UNSET:
            field_dict["closed"] = closed
        if reserved is not UNSET:
            field_dict["reserved"] = reserved
        if loaded is not UNSET:
            field_dict["loaded"] = loaded

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.closed_view import ClosedView
        from ..models.reserved_view import ReservedView

        d = dict(src_dict)
        group = d.pop("group")

        state = d.pop("state")

        kinds = cast(list[str], d.pop("kinds"))

        arch = d.pop("arch")

        memory_mb = d.pop("memory_mb")

        free_memory_mb = d.pop("free_memory_mb")

        jobs = cast(list[str], d.pop("jobs"))

        def _parse_cpus(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpus = _parse_cpus(d.pop("cpus", UNSET))

        def _parse_free_cpus(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        free_cpus = _parse_free_cpus(d.pop("free_cpus", UNSET))

        def _parse_lost_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lost_ms = _parse_lost_ms(d.pop("lost_ms", UNSET))

        def _parse_closed(data: object) -> ClosedView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                closed_type_0 = ClosedView.from_dict(data)

                return closed_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ClosedView | None | Unset, data)

        closed = _parse_closed(d.pop("closed", UNSET))

        def _parse_reserved(data: object) -> None | ReservedView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                reserved_type_0 = ReservedView.from_dict(data)

                return reserved_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ReservedView | Unset, data)

        reserved = _parse_reserved(d.pop("reserved", UNSET))

        loaded = d.pop("loaded", UNSET)

        host_row = cls(
            group=group,
            state=state,
            kinds=kinds,
            arch=arch,
            memory_mb=memory_mb,
            free_memory_mb=free_memory_mb,
            jobs=jobs,
            cpus=cpus,
            free_cpus=free_cpus,
            lost_ms=lost_ms,
            closed=closed,
            reserved=reserved,
            loaded=loaded,
        )

        host_row.additional_properties = d
        return host_row

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
