from typing import Literal

JobsOrder = Literal["newest", "oldest"]

JOBS_ORDER_VALUES: set[JobsOrder] = {
    "newest",
    "oldest",
}


def check_jobs_order(value: str) -> JobsOrder:
    if value in JOBS_ORDER_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {JOBS_ORDER_VALUES!r}"
    )
