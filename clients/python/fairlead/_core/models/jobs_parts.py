from typing import Literal

JobsParts = Literal["all", "no_parents", "no_shards", "only_shards"]

JOBS_PARTS_VALUES: set[JobsParts] = {
    "all",
    "no_parents",
    "no_shards",
    "only_shards",
}


def check_jobs_parts(value: str) -> JobsParts:
    if value in JOBS_PARTS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {JOBS_PARTS_VALUES!r}"
    )
