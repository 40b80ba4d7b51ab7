from typing import Literal

SeriesBy = Literal["account", "class", "host", "queue", "suite"]

SERIES_BY_VALUES: set[SeriesBy] = {
    "account",
    "class",
    "host",
    "queue",
    "suite",
}


def check_series_by(value: str) -> SeriesBy:
    if value in SERIES_BY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SERIES_BY_VALUES!r}")
