from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_event import JobEvent
from ...types import UNSET, Response, Unset


def _get_kwargs(
    submit: str,
    *,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["after"] = after

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/submits/{submit}/events".format(
            submit=quote(str(submit), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | JobEvent:
    if response.status_code == 200:
        response_200 = JobEvent.from_dict(response.text)

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | JobEvent]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    submit: str,
    *,
    client: AuthenticatedClient,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobEvent]:
    """a stream of the changes of a submit's jobs, until all have ended

    Args:
        submit (str):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobEvent]
    """

    kwargs = _get_kwargs(
        submit=submit,
        after=after,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    submit: str,
    *,
    client: AuthenticatedClient,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobEvent | None:
    """a stream of the changes of a submit's jobs, until all have ended

    Args:
        submit (str):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobEvent
    """

    return sync_detailed(
        submit=submit,
        client=client,
        after=after,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    submit: str,
    *,
    client: AuthenticatedClient,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobEvent]:
    """a stream of the changes of a submit's jobs, until all have ended

    Args:
        submit (str):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobEvent]
    """

    kwargs = _get_kwargs(
        submit=submit,
        after=after,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    submit: str,
    *,
    client: AuthenticatedClient,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobEvent | None:
    """a stream of the changes of a submit's jobs, until all have ended

    Args:
        submit (str):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobEvent
    """

    return (
        await asyncio_detailed(
            submit=submit,
            client=client,
            after=after,
            my_account=my_account,
        )
    ).parsed
