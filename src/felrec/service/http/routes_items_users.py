"""Items and users: search, read, describe and delete them.

Writes wait for the ingest thread without a thread of their own, so that they keep none from reads.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from felrec.answers.types import Erasure, FoundItems, FoundUsers, Item, User
from felrec.service.engine.listing import Sorting
from felrec.service.engine.types import Question
from felrec.service.http.access import engine_of, result_of
from felrec.service.http.audit_entries import count_rows
from felrec.service.http.bodies import json_body
from felrec.service.http.fast_route import Checked
from felrec.service.http.parameters import AllTags, Excluded, NoTags, Offset, PathId, PerTag, TagList
from felrec.service.http.responses import json_response
from felrec.service.http.schemas import Attributes, body_of

Prefix = Annotated[str, Query(max_length=256, description="start of the id")]
Limit = Annotated[int, Query(ge=1, le=100, description="most entries")]

router = APIRouter(prefix="/v1", tags=["catalogue"], route_class=Checked)


@router.get("/items", responses={200: {"model": FoundItems}})
def list_items(
    request: Request,
    prefix: Prefix = "",
    limit: Limit = 10,
    sort: Annotated[Sorting | None, Query(description="a list instead of a search; trending if not said")] = None,
    hours: Annotated[float | None, Query(gt=0, description="only items with events in the last hours")] = None,
    tags: TagList = None,
    all_tags: AllTags = None,
    no_tags: NoTags = None,
    exclude: Excluded = None,
    per_tag: PerTag = None,
    offset: Offset = 0,
) -> Response:
    """A search: items with a word of the title that starts with `prefix`, then items whose id does.

    Or, with `sort` or any filter, a list for everybody, of all items or of the first 1,000 that a search finds.
    """
    engine = engine_of(request)
    filters = tags or (), all_tags or (), no_tags or (), exclude or ()
    if sort is None and hours is None and per_tag is None and not offset and not any(filters):
        return json_response(FoundItems(tuple(engine.search_items(prefix, limit))))
    found = [item.id for item in engine.search_items(prefix, engine.limits.k)] if prefix else None
    question = Question(None, (), limit, None, found, *filters, per_tag, offset)
    sort = sort or "trending"
    return json_response(FoundItems(tuple(engine.list_items(sort, question, hours)), sort))


@router.get("/items/{id}", responses={200: {"model": Item}})
def get_item(request: Request, id: PathId) -> Response:
    """An item: attributes and number of events."""
    return json_response(engine_of(request).item(id))


@router.put("/items/{id}", responses={200: {"model": Item}}, openapi_extra=body_of(Attributes))
async def put_item(request: Request, id: PathId) -> Response:
    """Set the title, the tags, the availability and the group of an item. The model never uses them."""
    given = await json_body(request, Attributes)
    item = await result_of(request, engine_of(request).put_item(id, given.said()))
    return json_response(item)


@router.delete("/items/{id}", status_code=204)
async def delete_item(request: Request, id: PathId) -> Response:
    """Delete an item's attributes and stop recommending it. Its events are kept: they belong to users' histories."""
    await result_of(request, engine_of(request).delete_item(id))
    return Response(status_code=204)


@router.get("/users", responses={200: {"model": FoundUsers}})
def search_users(
    request: Request,
    prefix: Prefix = "",
    limit: Limit = 10,
    sample: Annotated[bool, Query(description="return a sample of users instead")] = False,
) -> Response:
    """Users whose id starts with `prefix`."""
    found = engine_of(request).sample_users(limit) if sample else engine_of(request).search_users(prefix, limit)
    return json_response(FoundUsers(tuple(found)))


@router.get("/users/{id}", responses={200: {"model": User}})
def get_user(
    request: Request, id: PathId, limit: Annotated[int, Query(ge=1, le=1000, description="newest events")] = 100
) -> Response:
    """A user and their newest events, newest first."""
    return json_response(engine_of(request).user(id, limit))


@router.delete("/users/{id}", responses={200: {"model": Erasure}})
async def erase_user(request: Request, id: PathId) -> Response:
    """Erase a user's id, events, history and vector, also from free pages of the file.

    Answers when all is erased; posts are written meanwhile. The id is unknown from the start: a second request is
    answered with 404, and new events with the id are those of a new user.
    """
    erasure = await result_of(request, engine_of(request).erase_user(id))
    count_rows(request, events=erasure.events)
    return json_response(erasure)
