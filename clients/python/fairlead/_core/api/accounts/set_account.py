from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.account_change import AccountChange
from ...models.account_view import AccountView
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    my_account_path: str,
    *,
    body: AccountChange | Unset = UNSET,
    my_account_query: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account_query

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/accounts/{my_account_path}".format(
            my_account_path=quote(str(my_account_path), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AccountView | ErrorBody:
    if response.status_code == 200:
        response_200 = AccountView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AccountView | ErrorBody]:
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
    body: AccountChange | Unset = UNSET,
    my_account_query: str | Unset = UNSET,
) -> Response[AccountView | ErrorBody]:
    """creates or changes an account, answers its token once

    Args:
        my_account_path (str):
        my_account_query (str | Unset):
        body (AccountChange | Unset): What to do with an account.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountView | ErrorBody]
    """

    kwargs = _get_kwargs(
        my_account_path=my_account_path,
        body=body,
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
    body: AccountChange | Unset = UNSET,
    my_account_query: str | Unset = UNSET,
) -> AccountView | ErrorBody | None:
    """creates or changes an account, answers its token once

    Args:
        my_account_path (str):
        my_account_query (str | Unset):
        body (AccountChange | Unset): What to do with an account.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountView | ErrorBody
    """

    return sync_detailed(
        my_account_path=my_account_path,
        client=client,
        body=body,
        my_account_query=my_account_query,
    ).parsed


async def asyncio_detailed(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    body: AccountChange | Unset = UNSET,
    my_account_query: str | Unset = UNSET,
) -> Response[AccountView | ErrorBody]:
    """creates or changes an account, answers its token once

    Args:
        my_account_path (str):
        my_account_query (str | Unset):
        body (AccountChange | Unset): What to do with an account.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountView | ErrorBody]
    """

    kwargs = _get_kwargs(
        my_account_path=my_account_path,
        body=body,
        my_account_query=my_account_query,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    my_account_path: str,
    *,
    client: AuthenticatedClient,
    body: AccountChange | Unset = UNSET,
    my_account_query: str | Unset = UNSET,
) -> AccountView | ErrorBody | None:
    """creates or changes an account, answers its token once

    Args:
        my_account_path (str):
        my_account_query (str | Unset):
        body (AccountChange | Unset): What to do with an account.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountView | ErrorBody
    """

    return (
        await asyncio_detailed(
            my_account_path=my_account_path,
            client=client,
            body=body,
            my_account_query=my_account_query,
        )
    ).parsed
