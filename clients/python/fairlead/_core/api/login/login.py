from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.account_view import AccountView
from ...models.error_body import ErrorBody
from ...models.login import Login
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: Login | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/login",
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
    *,
    client: AuthenticatedClient | Client,
    body: Login | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[AccountView | ErrorBody]:
    """lets a browser in: the answer sets a cookie for pages of this scheduler

    Args:
        my_account (str | Unset):
        body (Login | Unset): A login of a person: with a token, or in an open lab with a name.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountView | ErrorBody]
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
    client: AuthenticatedClient | Client,
    body: Login | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> AccountView | ErrorBody | None:
    """lets a browser in: the answer sets a cookie for pages of this scheduler

    Args:
        my_account (str | Unset):
        body (Login | Unset): A login of a person: with a token, or in an open lab with a name.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountView | ErrorBody
    """

    return sync_detailed(
        client=client,
        body=body,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: Login | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[AccountView | ErrorBody]:
    """lets a browser in: the answer sets a cookie for pages of this scheduler

    Args:
        my_account (str | Unset):
        body (Login | Unset): A login of a person: with a token, or in an open lab with a name.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountView | ErrorBody]
    """

    kwargs = _get_kwargs(
        body=body,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: Login | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> AccountView | ErrorBody | None:
    """lets a browser in: the answer sets a cookie for pages of this scheduler

    Args:
        my_account (str | Unset):
        body (Login | Unset): A login of a person: with a token, or in an open lab with a name.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountView | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            my_account=my_account,
        )
    ).parsed
