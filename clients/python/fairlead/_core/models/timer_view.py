from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.timer_run import TimerRun
    from ..models.timer_view_job_type_0 import TimerViewJobType0


T = TypeVar("T", bound="TimerView")


@_attrs_define
class TimerView:
    """A job that is run again and again.

    Attributes:
        timer (str): Its name, one for an account. Default: ''.
        my_account (str): Whose it is. Default: ''.
        suite (str): The suite of its job. Default: ''.
        overlap (str): What happens while an earlier run has not ended: `skip`, `queue` or `replace`. Default: ''.
        missed (str): What becomes of runs that nobody could start in time: `once` or `skip`. Default: ''.
        paused (bool): Whether it is paused. Default: False.
        runs (int): How many runs there were. Default: 0.
        skipped_runs (int): How many times were left out because an earlier run had not ended. Default: 0.
        missed_runs (int): How many times passed while nobody could start a run. Default: 0.
        refused_runs (int): How many runs were refused, as a submit would have been. Default: 0.
        every (None | str | Unset): Its period, as it was written.
        cron (None | str | Unset): Its cron line.
        timezone (None | str | Unset): The zone whose clocks the line means.
        next_run (None | str | Unset): When its next run is due, UTC; none while it is paused.
        last_run (None | TimerRun | Unset): Its last run.
        why (str | Unset): Why no run came of the latest time; empty: one did.
        warning (str | Unset): What is to be said of a new or changed timer: that no known host could ever run its job.
        job (None | TimerViewJobType0 | Unset): Its job, without secrets; of one timer only.
    """

    timer: str = ""
    my_account: str = ""
    suite: str = ""
    overlap: str = ""
    missed: str = ""
    paused: bool = False
    runs: int = 0
    skipped_runs: int = 0
    missed_runs: int = 0
    refused_runs: int = 0
    every: None | str | Unset = UNSET
    cron: None | str | Unset = UNSET
    timezone: None | str | Unset = UNSET
    next_run: None | str | Unset = UNSET
    last_run: None | TimerRun | Unset = UNSET
    why: str | Unset = UNSET
    warning: str | Unset = UNSET
    job: None | TimerViewJobType0 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.timer_run import TimerRun
        from ..models.timer_view_job_type_0 import TimerViewJobType0

        timer = self.timer

        my_account = self.my_account

        suite = self.suite

        overlap = self.overlap

        missed = self.missed

        paused = self.paused

        runs = self.runs

        skipped_runs = self.skipped_runs

        missed_runs = self.missed_runs

        refused_runs = self.refused_runs

        every: None | str | Unset
        if isinstance(self.every, Unset):
            every = UNSET
        else:
            every = self.every

        cron: None | str | Unset
        if isinstance(self.cron, Unset):
            cron = UNSET
        else:
            cron = self.cron

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        next_run: None | str | Unset
        if isinstance(self.next_run, Unset):
            next_run = UNSET
        else:
            next_run = self.next_run

        last_run: dict[str, Any] | None | Unset
        if isinstance(self.last_run, Unset):
            last_run = UNSET
        elif isinstance(self.last_run, TimerRun):
            last_run = self.last_run.to_dict()
        else:
            last_run = self.last_run

        why = self.why

        warning = self.warning

        job: dict[str, Any] | None | Unset
        if isinstance(self.job, Unset):
            job = UNSET
        elif isinstance(self.job, TimerViewJobType0):
            job = self.job.to_dict()
        else:
            job = self.job

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "timer": timer,
                "my_account": my_account,
                "suite": suite,
                "overlap": overlap,
                "missed": missed,
                "paused": paused,
                "runs": runs,
                "skipped_runs": skipped_runs,
                "missed_runs": missed_runs,
                "refused_runs": refused_runs,
            }
        )
        if every is not UNSET:
            field_dict["every"] = every
        if cron is not UNSET:
            field_dict["cron"] = cron
        if timezone is not UNSET:
            field_dict["timezone"] = timezone
        if next_run is not UNSET:
            field_dict["next_run"] = next_run
        if last_run is not UNSET:
            field_dict["last_run"] = last_run
        if why is not UNSET:
            field_dict["why"] = why
        if warning is not UNSET:
            field_dict["warning"] = warning
        if job is not UNSET:
            field_dict["job"] = job

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.timer_run import TimerRun
        from ..models.timer_view_job_type_0 import TimerViewJobType0

        d = dict(src_dict)
        timer = d.pop("timer")

        my_account = d.pop("my_account")

        suite = d.pop("suite")

        overlap = d.pop("overlap")

        missed = d.pop("missed")

        paused = d.pop("paused")

        runs = d.pop("runs")

        skipped_runs = d.pop("skipped_runs")

        missed_runs = d.pop("missed_runs")

        refused_runs = d.pop("refused_runs")

        def _parse_every(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        every = _parse_every(d.pop("every", UNSET))

        def _parse_cron(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cron = _parse_cron(d.pop("cron", UNSET))

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        def _parse_next_run(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_run = _parse_next_run(d.pop("next_run", UNSET))

        def _parse_last_run(data: object) -> None | TimerRun | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                last_run_type_0 = TimerRun.from_dict(data)

                return last_run_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TimerRun | Unset, data)

        last_run = _parse_last_run(d.pop("last_run", UNSET))

        why = d.pop("why", UNSET)

        warning = d.pop("warning", UNSET)

        def _parse_job(data: object) -> None | TimerViewJobType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                job_type_0 = TimerViewJobType0.from_dict(data)

                return job_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TimerViewJobType0 | Unset, data)

        job = _parse_job(d.pop("job", UNSET))

        timer_view = cls(
            timer=timer,
            my_account=my_account,
            suite=suite,
            overlap=overlap,
            missed=missed,
            paused=paused,
            runs=runs,
            skipped_runs=skipped_runs,
            missed_runs=missed_runs,
            refused_runs=refused_runs,
            every=every,
            cron=cron,
            timezone=timezone,
            next_run=next_run,
            last_run=last_run,
            why=why,
            warning=warning,
            job=job,
        )

        timer_view.additional_properties = d
        return timer_view

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
