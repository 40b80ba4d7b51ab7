from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_body import JobBody
from ...models.timer_view import TimerView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    timer: str,
    *,
    body: JobBody | list[JobBody] | Unset = UNSET,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["account"] = account

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/timers/{timer}".format(
            timer=quote(str(timer), safe=""),
        ),
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
    timer: str,
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """changes its schedule, or replaces its job

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        timer=timer,
        body=body,
        account=account,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    timer: str,
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """changes its schedule, or replaces its job

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TimerView
    """

    return sync_detailed(
        timer=timer,
        client=client,
        body=body,
        account=account,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    timer: str,
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """changes its schedule, or replaces its job

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        timer=timer,
        body=body,
        account=account,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    timer: str,
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """changes its schedule, or replaces its job

    Args:
        timer (str):
        account (str | Unset):
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
            timer=timer,
            client=client,
            body=body,
            account=account,
            my_account=my_account,
        )
    ).parsed
