from typing import Literal

JobsGroupBy = Literal[
    "account", "health", "host", "queue", "stage", "submit_id", "suite", "tbox_group"
]

JOBS_GROUP_BY_VALUES: set[JobsGroupBy] = {
    "account",
    "health",
    "host",
    "queue",
    "stage",
    "submit_id",
    "suite",
    "tbox_group",
}


def check_jobs_group_by(value: str) -> JobsGroupBy:
    if value in JOBS_GROUP_BY_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {JOBS_GROUP_BY_VALUES!r}"
    )
