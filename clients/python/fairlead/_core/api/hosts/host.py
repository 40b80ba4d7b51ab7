from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.host_view import HostView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    hostname: str,
    *,
    report_metrics: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["report_metrics"] = report_metrics

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/hosts/{hostname}".format(
            hostname=quote(str(hostname), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | HostView:
    if response.status_code == 200:
        response_200 = HostView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | HostView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    hostname: str,
    *,
    client: AuthenticatedClient,
    report_metrics: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | HostView]:
    """one host, and why it is idle

    Args:
        hostname (str):
        report_metrics (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | HostView]
    """

    kwargs = _get_kwargs(
        hostname=hostname,
        report_metrics=report_metrics,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    hostname: str,
    *,
    client: AuthenticatedClient,
    report_metrics: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | HostView | None:
    """one host, and why it is idle

    Args:
        hostname (str):
        report_metrics (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | HostView
    """

    return sync_detailed(
        hostname=hostname,
        client=client,
        report_metrics=report_metrics,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    hostname: str,
    *,
    client: AuthenticatedClient,
    report_metrics: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | HostView]:
    """one host, and why it is idle

    Args:
        hostname (str):
        report_metrics (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | HostView]
    """

    kwargs = _get_kwargs(
        hostname=hostname,
        report_metrics=report_metrics,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    hostname: str,
    *,
    client: AuthenticatedClient,
    report_metrics: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | HostView | None:
    """one host, and why it is idle

    Args:
        hostname (str):
        report_metrics (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | HostView
    """

    return (
        await asyncio_detailed(
            hostname=hostname,
            client=client,
            report_metrics=report_metrics,
            my_account=my_account,
        )
    ).parsed
