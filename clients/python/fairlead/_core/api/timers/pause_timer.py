from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.timer_view import TimerView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    timer: str,
    *,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["account"] = account

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/timers/{timer}/pause".format(
            timer=quote(str(timer), safe=""),
        ),
        "params": params,
    }

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
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """lets no run begin until it is resumed

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        timer=timer,
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
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """lets no run begin until it is resumed

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TimerView
    """

    return sync_detailed(
        timer=timer,
        client=client,
        account=account,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    timer: str,
    *,
    client: AuthenticatedClient,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | TimerView]:
    """lets no run begin until it is resumed

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TimerView]
    """

    kwargs = _get_kwargs(
        timer=timer,
        account=account,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    timer: str,
    *,
    client: AuthenticatedClient,
    account: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | TimerView | None:
    """lets no run begin until it is resumed

    Args:
        timer (str):
        account (str | Unset):
        my_account (str | Unset):

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
            account=account,
            my_account=my_account,
        )
    ).parsed
