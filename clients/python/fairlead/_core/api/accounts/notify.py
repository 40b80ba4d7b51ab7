from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.notify_view import NotifyView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    my_account_path: str,
    *,
    my_account_query: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["my_account"] = my_account_query

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/accounts/{my_account_path}/notify".format(
            my_account_path=quote(str(my_account_path), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | NotifyView:
    if response.status_code == 200:
        response_200 = NotifyView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | NotifyView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    my_account_query: str | Unset = UNSET,
) -> Response[ErrorBody | NotifyView]:
    """who is told of the jobs of an account that do not say so themselves; 404: nobody

    Args:
        my_account_path (str):
        my_account_query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | NotifyView]
    """

    kwargs = _get_kwargs(
        my_account_path=my_account_path,
        my_account_query=my_account_query,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    my_account_query: str | Unset = UNSET,
) -> ErrorBody | NotifyView | None:
    """who is told of the jobs of an account that do not say so themselves; 404: nobody

    Args:
        my_account_path (str):
        my_account_query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | NotifyView
    """

    return sync_detailed(
        my_account_path=my_account_path,
        client=client,
        my_account_query=my_account_query,
    ).parsed


async def asyncio_detailed(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    my_account_query: str | Unset = UNSET,
) -> Response[ErrorBody | NotifyView]:
    """who is told of the jobs of an account that do not say so themselves; 404: nobody

    Args:
        my_account_path (str):
        my_account_query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | NotifyView]
    """

    kwargs = _get_kwargs(
        my_account_path=my_account_path,
        my_account_query=my_account_query,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    my_account_query: str | Unset = UNSET,
) -> ErrorBody | NotifyView | None:
    """who is told of the jobs of an account that do not say so themselves; 404: nobody

    Args:
        my_account_path (str):
        my_account_query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | NotifyView
    """

    return (
        await asyncio_detailed(
            my_account_path=my_account_path,
            client=client,
            my_account_query=my_account_query,
        )
    ).parsed
