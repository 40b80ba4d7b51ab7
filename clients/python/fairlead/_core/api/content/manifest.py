from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    content: str,
    *,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["job_id"] = job_id

    params["job_token"] = job_token

    params["attempt"] = attempt

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/content/manifests/{content}".format(
            content=quote(str(content), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody:
    if response.status_code == 200:
        response_200 = cast(Any, response.content)
        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    content: str,
    *,
    client: AuthenticatedClient,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[Any | ErrorBody]:
    """the list of the files of an input or output

    Args:
        content (str):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody]
    """

    kwargs = _get_kwargs(
        content=content,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    content: str,
    *,
    client: AuthenticatedClient,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Any | ErrorBody | None:
    """the list of the files of an input or output

    Args:
        content (str):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody
    """

    return sync_detailed(
        content=content,
        client=client,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    content: str,
    *,
    client: AuthenticatedClient,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[Any | ErrorBody]:
    """the list of the files of an input or output

    Args:
        content (str):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody]
    """

    kwargs = _get_kwargs(
        content=content,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    content: str,
    *,
    client: AuthenticatedClient,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Any | ErrorBody | None:
    """the list of the files of an input or output

    Args:
        content (str):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody
    """

    return (
        await asyncio_detailed(
            content=content,
            client=client,
            job_id=job_id,
            job_token=job_token,
            attempt=attempt,
            my_account=my_account,
        )
    ).parsed
