from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.closed_view import ClosedView
    from ..models.conflict_view import ConflictView
    from ..models.empties_view import EmptiesView
    from ..models.executor_said import ExecutorSaid
    from ..models.host_load import HostLoad
    from ..models.host_view_facts import HostViewFacts
    from ..models.registered_view import RegisteredView
    from ..models.reserved_view import ReservedView


T = TypeVar("T", bound="HostView")


@_attrs_define
class HostView:
    """One host.

    Attributes:
        hostname (str): Its name.
        kinds (list[str]): Kinds that it offers.
        arch (str): Its architecture.
        group (str): Its group.
        memory_mb (int): Memory of the whole host, MB.
        free_memory_mb (int): Memory free as last said, MB.
        tags (list[str]): Its tags.
        devices (list[str]): Its devices.
        state (str): `waiting` (asks for work), `busy`, `idle`, `silent` (not heard of for a lease), `off` (the same of
            a
            registered machine: jobs wait for it); of a closed host `cordoned`,
            `draining` (it still has jobs), `drained`, `suspect`.
        seen_ms (int): When last heard of.
        jobs (list[str]): Jobs that it has.
        why_idle (list[str]): Why it is idle, one reason a line.
        cpus (int | None | Unset): CPUs of the whole host. Absent: it did not say, so they are not checked.
        free_cpus (int | None | Unset): CPUs free as last said.
        closed (ClosedView | None | Unset): Why it gets no new job, if it is closed.
        reserved (None | ReservedView | Unset): For whom it is kept, if it is.
        isolation (str | Unset): How its jobs are kept apart: `users` (each under a user of its own) or `none` (who
            submits to it must trust
            all others who do). Empty: its agent has not said.
        executors (list[ExecutorSaid] | Unset): What it can run jobs in, and why something is missing. Empty: its agent
            has not said.
        load (HostLoad | None | Unset): How loaded it is, as last said. Absent: its agent has not said.
        facts (HostViewFacts | Unset): What the machine is, by family, as its agent or its registration said; each value
            is a tag `family:value`.
        registered (None | RegisteredView | Unset): What was registered for it, which counts beside what its agent says.
            Absent: nobody registered it.
        conflict (ConflictView | None | Unset): Another agent of the same name that is refused.
        empties (EmptiesView | None | Unset): Of a closed host that still has jobs: when it is empty. A list of hosts
            does not say it.
    """

    hostname: str
    kinds: list[str]
    arch: str
    group: str
    memory_mb: int
    free_memory_mb: int
    tags: list[str]
    devices: list[str]
    state: str
    seen_ms: int
    jobs: list[str]
    why_idle: list[str]
    cpus: int | None | Unset = UNSET
    free_cpus: int | None | Unset = UNSET
    closed: ClosedView | None | Unset = UNSET
    reserved: None | ReservedView | Unset = UNSET
    isolation: str | Unset = UNSET
    executors: list[ExecutorSaid] | Unset = UNSET
    load: HostLoad | None | Unset = UNSET
    facts: HostViewFacts | Unset = UNSET
    registered: None | RegisteredView | Unset = UNSET
    conflict: ConflictView | None | Unset = UNSET
    empties: EmptiesView | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.closed_view import ClosedView
        from ..models.conflict_view import ConflictView
        from ..models.empties_view import EmptiesView
        from ..models.host_load import HostLoad
        from ..models.registered_view import RegisteredView
        from ..models.reserved_view import ReservedView

        hostname = self.hostname

        kinds = self.kinds

        arch = self.arch

        group = self.group

        memory_mb = self.memory_mb

        free_memory_mb = self.free_memory_mb

        tags = self.tags

        devices = self.devices

        state = self.state

        seen_ms = self.seen_ms

        jobs = self.jobs

        why_idle = self.why_idle

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

        isolation = self.isolation

        executors: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.executors, Unset):
            executors = []
            for executors_item_data in self.executors:
                executors_item = executors_item_data.to_dict()
                executors.append(executors_item)

        load: dict[str, Any] | None | Unset
        if isinstance(self.load, Unset):
            load = UNSET
        elif isinstance(self.load, HostLoad):
            load = self.load.to_dict()
        else:
            load = self.load

        facts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.facts, Unset):
            facts = self.facts.to_dict()

        registered: dict[str, Any] | None | Unset
        if isinstance(self.registered, Unset):
            registered = UNSET
        elif isinstance(self.registered, RegisteredView):
            registered = self.registered.to_dict()
        else:
            registered = self.registered

        conflict: dict[str, Any] | None | Unset
        if isinstance(self.conflict, Unset):
            conflict = UNSET
        elif isinstance(self.conflict, ConflictView):
            conflict = self.conflict.to_dict()
        else:
            conflict = self.conflict

        empties: dict[str, Any] | None | Unset
        if isinstance(self.empties, Unset):
            empties = UNSET
        elif isinstance(self.empties, EmptiesView):
            empties = self.empties.to_dict()
        else:
            empties = self.empties

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "hostname": hostname,
                "kinds": kinds,
                "arch": arch,
                "group": group,
                "memory_mb": memory_mb,
                "free_memory_mb": free_memory_mb,
                "tags": tags,
                "devices": devices,
                "state": state,
                "seen_ms": seen_ms,
                "jobs": jobs,
                "why_idle": why_idle,
            }
        )
        if cpus is not UNSET:
            field_dict["cpus"] = cpus
        if free_cpus is not UNSET:
            field_dict["free_cpus"] = free_cpus
        if closed is not UNSET:
            field_dict["closed"] = closed
        if reserved is not UNSET:
            field_dict["reserved"] = reserved
        if isolation is not UNSET:
            field_dict["isolation"] = isolation
        if executors is not UNSET:
            field_dict["executors"] = executors
        if load is not UNSET:
            field_dict["load"] = load
        if facts is not UNSET:
            field_dict["facts"] = facts
        if registered is not UNSET:
            field_dict["registered"] = registered
        if conflict is not UNSET:
            field_dict["conflict"] = conflict
        if empties is not UNSET:
            field_dict["empties"] = empties

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.closed_view import ClosedView
        from ..models.conflict_view import ConflictView
        from ..models.empties_view import EmptiesView
        from ..models.executor_said import ExecutorSaid
        from ..models.host_load import HostLoad
        from ..models.host_view_facts import HostViewFacts
        from ..models.registered_view import RegisteredView
        from ..models.reserved_view import ReservedView

        d = dict(src_dict)
        hostname = d.pop("hostname")

        kinds = cast(list[str], d.pop("kinds"))

        arch = d.pop("arch")

        group = d.pop("group")

        memory_mb = d.pop("memory_mb")

        free_memory_mb = d.pop("free_memory_mb")

        tags = cast(list[str], d.pop("tags"))

        devices = cast(list[str], d.pop("devices"))

        state = d.pop("state")

        seen_ms = d.pop("seen_ms")

        jobs = cast(list[str], d.pop("jobs"))

        why_idle = cast(list[str], d.pop("why_idle"))

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

        isolation = d.pop("isolation", UNSET)

        _executors = d.pop("executors", UNSET)
        executors: list[ExecutorSaid] | Unset = UNSET
        if _executors is not UNSET:
            executors = []
            for executors_item_data in _executors:
                executors_item = ExecutorSaid.from_dict(executors_item_data)

                executors.append(executors_item)

        def _parse_load(data: object) -> HostLoad | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                load_type_0 = HostLoad.from_dict(data)

                return load_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HostLoad | None | Unset, data)

        load = _parse_load(d.pop("load", UNSET))

        _facts = d.pop("facts", UNSET)
        facts: HostViewFacts | Unset
        if isinstance(_facts, Unset):
            facts = UNSET
        else:
            facts = HostViewFacts.from_dict(_facts)

        def _parse_registered(data: object) -> None | RegisteredView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                registered_type_0 = RegisteredView.from_dict(data)

                return registered_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RegisteredView | Unset, data)

        registered = _parse_registered(d.pop("registered", UNSET))

        def _parse_conflict(data: object) -> ConflictView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                conflict_type_0 = ConflictView.from_dict(data)

                return conflict_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ConflictView | None | Unset, data)

        conflict = _parse_conflict(d.pop("conflict", UNSET))

        def _parse_empties(data: object) -> EmptiesView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                empties_type_0 = EmptiesView.from_dict(data)

                return empties_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EmptiesView | None | Unset, data)

        empties = _parse_empties(d.pop("empties", UNSET))

        host_view = cls(
            hostname=hostname,
            kinds=kinds,
            arch=arch,
            group=group,
            memory_mb=memory_mb,
            free_memory_mb=free_memory_mb,
            tags=tags,
            devices=devices,
            state=state,
            seen_ms=seen_ms,
            jobs=jobs,
            why_idle=why_idle,
            cpus=cpus,
            free_cpus=free_cpus,
            closed=closed,
            reserved=reserved,
            isolation=isolation,
            executors=executors,
            load=load,
            facts=facts,
            registered=registered,
            conflict=conflict,
            empties=empties,
        )

        host_view.additional_properties = d
        return host_view

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
