from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_body import JobBody
from ...models.timer_view import TimerView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: JobBody | list[JobBody] | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/timers",
        "params": params,
    }

    if isinstance(body, JobBody):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = []
        for componentsschemas_jobs_type_1_item_data in body:
            componentsschemas_jobs_type_1_item = (
                componentsschemas_jobs_type_1_item_data.to_dict()
            )
            _kwargs["json"].append(componentsschemas_jobs_type_1_item)

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | TimerView:
    if response.status_code == 200:
        response_200 = TimerView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | TimerView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """submits a timer: one job with timer, its name, and every or cron

    Args:
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        body=body,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """submits a timer: one job with timer, its name, and every or cron

    Args:
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TimerView
    """

    return sync_detailed(
        client=client,
        body=body,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """submits a timer: one job with timer, its name, and every or cron

    Args:
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        body=body,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """submits a timer: one job with timer, its name, and every or cron

    Args:
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TimerView
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            my_account=my_account,
        )
    ).parsed
