"""Items and users: search, read, describe and delete them.

Writes wait for the ingest thread without a thread of their own, so that they keep none from reads.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from felrec.answers.types import Erasure, FoundItems, FoundUsers, Item, ItemsReceipt, User
from felrec.service.engine.listing import Sorting
from felrec.service.engine.types import Question
from felrec.service.http.access import engine_of, key_of, result_of, service_of
from felrec.service.http.audit_entries import count_rows
from felrec.service.http.bodies import json_body, parsed_body, sent_as_lines
from felrec.service.http.fast_route import Checked
from felrec.service.http.item_parsing import read_items
from felrec.service.http.parameters import LIMITS, AllTags, Excluded, NoTags, Offset, PathId, PerTag, TagList
from felrec.service.http.problems import CAPACITY, Problem, none_valid
from felrec.service.http.responses import json_response
from felrec.service.http.row_bodies import rows_of
from felrec.service.http.schemas import ITEMS_BODY, Attributes, body_of

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


@router.post("/items", responses={200: {"model": ItemsReceipt}}, openapi_extra=ITEMS_BODY)
async def post_items(
    request: Request,
    strict: Annotated[bool, Query(description="reject rows with unknown fields instead of ignoring those")] = False,
) -> Response:
    """Set the attributes of one item, of a list of at most 10,000, or of one per line (NDJSON).

    As PUT does for one item, a row replaces all attributes of its item. Invalid rows are rejected one by one with a
    reason, and at a limit of items or memory those of new items. If no row is left, the answer is 422 or 507.

    Fields may have the usual names of columns in files, such as product_id, name and genres, and tags may be one text
    with | between them. Other fields are ignored, and the receipt counts them; with strict=true such rows are rejected.
    """
    service, lines = service_of(request), sent_as_lines(request, "items")
    service.rates.check_events(key_of(request.scope), 0)  # before the body is read
    read = await parsed_body(request, lambda body: read_items(rows_of(body, lines), strict))
    rows = sum(map(len, read.numbers.values())) + len(read.rejected)
    service.rates.check_events(key_of(request.scope), rows)
    if not read.items and read.rejected:
        count_rows(request, items=0, rejected=len(read.rejected))
        raise none_valid(read.rejected)
    refused = await result_of(request, service.engine.put_items(read.items)) if read.items else {}
    rejected = tuple(read.refuse(refused))
    count_rows(request, items=rows - len(rejected), rejected=len(rejected))
    if rejected and len(rejected) == rows:
        raise Problem(507, f"nothing was stored; {next(iter(refused.values()))}", None, 0, rejected, CAPACITY)
    described = service.engine.health().described_items
    return json_response(ItemsReceipt(rows - len(rejected), rejected, described, read.ignored))


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
    limit: Annotated[int, Query(ge=1, le=LIMITS.k, description="most entries")] = 10,
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
