from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_view import JobView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    fields: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["fields"] = fields

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/jobs/{id}".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | JobView:
    if response.status_code == 200:
        response_200 = JobView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | JobView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    fields: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobView]:
    """one job, flat

    Args:
        id (str):
        fields (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobView]
    """

    kwargs = _get_kwargs(
        id=id,
        fields=fields,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient,
    fields: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobView | None:
    """one job, flat

    Args:
        id (str):
        fields (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobView
    """

    return sync_detailed(
        id=id,
        client=client,
        fields=fields,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    fields: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobView]:
    """one job, flat

    Args:
        id (str):
        fields (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobView]
    """

    kwargs = _get_kwargs(
        id=id,
        fields=fields,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient,
    fields: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobView | None:
    """one job, flat

    Args:
        id (str):
        fields (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobView
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            fields=fields,
            my_account=my_account,
        )
    ).parsed
