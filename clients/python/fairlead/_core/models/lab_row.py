from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.lab_row_ended_24h import LabRowEnded24H
    from ..models.lab_row_hosts_by_state import LabRowHostsByState
    from ..models.lab_row_stages import LabRowStages
    from ..models.paused_view import PausedView
    from ..models.store_row import StoreRow


T = TypeVar("T", bound="LabRow")


@_attrs_define
class LabRow:
    """The lab in numbers.

    Attributes:
        name (str): The replica that answers. Default: ''.
        version (str): Its version. Default: ''.
        waiting (int): Jobs that could run now and wait for a host. Default: 0.
        running (int): Jobs that hosts have. Default: 0.
        stages (LabRowStages): Open jobs by stage, counted every tenth second; shards count, their parents do not.
        not_ready (int): Of those in stage submit: jobs that wait for a time, a turn or other jobs. Default: 0.
        ended_24h (LabRowEnded24H): Jobs that were submitted within 24 hours and have ended, by health.
        hosts_by_state (LabRowHostsByState): Hosts by state, as [`HostRow::state`].
        store (StoreRow): How the store is.
        paused (None | PausedView | Unset): Who paused the whole lab; absent: it is not paused.
    """

    stages: LabRowStages
    ended_24h: LabRowEnded24H
    hosts_by_state: LabRowHostsByState
    store: StoreRow
    name: str = ""
    version: str = ""
    waiting: int = 0
    running: int = 0
    not_ready: int = 0
    paused: None | PausedView | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.paused_view import PausedView

        name = self.name

        version = self.version

        waiting = self.waiting

        running = self.running

        stages = self.stages.to_dict()

        not_ready = self.not_ready

        ended_24h = self.ended_24h.to_dict()

        hosts_by_state = self.hosts_by_state.to_dict()

        store = self.store.to_dict()

        paused: dict[str, Any] | None | Unset
        if isinstance(self.paused, Unset):
            paused = UNSET
        elif isinstance(self.paused, PausedView):
            paused = self.paused.to_dict()
        else:
            paused = self.paused

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "version": version,
                "waiting": waiting,
                "running": running,
                "stages": stages,
                "not_ready": not_ready,
                "ended_24h": ended_24h,
                "hosts_by_state": hosts_by_state,
                "store": store,
            }
        )
        if paused is not UNSET:
            field_dict["paused"] = paused

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.lab_row_ended_24h import LabRowEnded24H
        from ..models.lab_row_hosts_by_state import LabRowHostsByState
        from ..models.lab_row_stages import LabRowStages
        from ..models.paused_view import PausedView
        from ..models.store_row import StoreRow

        d = dict(src_dict)
        name = d.pop("name")

        version = d.pop("version")

        waiting = d.pop("waiting")

        running = d.pop("running")

        stages = LabRowStages.from_dict(d.pop("stages"))

        not_ready = d.pop("not_ready")

        ended_24h = LabRowEnded24H.from_dict(d.pop("ended_24h"))

        hosts_by_state = LabRowHostsByState.from_dict(d.pop("hosts_by_state"))

        store = StoreRow.from_dict(d.pop("store"))

        def _parse_paused(data: object) -> None | PausedView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                paused_type_0 = PausedView.from_dict(data)

                return paused_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PausedView | Unset, data)

        paused = _parse_paused(d.pop("paused", UNSET))

        lab_row = cls(
            name=name,
            version=version,
            waiting=waiting,
            running=running,
            stages=stages,
            not_ready=not_ready,
            ended_24h=ended_24h,
            hosts_by_state=hosts_by_state,
            store=store,
            paused=paused,
        )

        lab_row.additional_properties = d
        return lab_row

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
