"""Recommendations, similar items, similar users, audiences and ranks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from felrec.answers.types import BestItems, NearItems, NearUsers, Ranks, Recommendations
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Question
from felrec.service.http.access import engine_of, result_of
from felrec.service.http.bodies import json_body
from felrec.service.http.fast_route import Checked, FastRoute
from felrec.service.http.parameters import (
    AllTags,
    Count,
    Excluded,
    ExcludeSeen,
    Explore,
    IdList,
    NoTags,
    Offset,
    PathId,
    PerTag,
    TagList,
)
from felrec.service.http.responses import json_response
from felrec.service.http.schemas import Session, body_of

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=Checked)
frequent = APIRouter(prefix="/v1", tags=["recommendations"], route_class=FastRoute)


@frequent.get("/users/{id}/recommendations", responses={200: {"model": Recommendations}})
async def recommend(
    request: Request,
    id: PathId,
    k: Count = 10,
    exclude_seen: ExcludeSeen = None,
    candidates: IdList = None,
    tags: TagList = None,
    all_tags: AllTags = None,
    no_tags: NoTags = None,
    exclude: Excluded = None,
    per_tag: PerTag = None,
    offset: Offset = 0,
    explore: Explore = 0,
    why: Annotated[bool, Query(description="also return what the score of each item is made of")] = False,
) -> Response:
    """The best items for a known or new user, from the whole catalogue or from `candidates`."""
    began = time.perf_counter()
    filters = candidates, tags or (), all_tags or (), no_tags or (), exclude or ()
    found = await _ask(request, Question(id, (), k, exclude_seen, *filters, per_tag, offset, explore))
    if why:
        found = await run_in_threadpool(_explained, engine_of(request), id, found)
    return _response(found, began)


@frequent.post("/recommendations", responses={200: {"model": Recommendations}}, openapi_extra=body_of(Session))
async def recommend_session(request: Request) -> Response:
    """The best items for an anonymous user with these items. Nothing is stored."""
    began, given = time.perf_counter(), await json_body(request, Session)
    return _response(await _ask(request, given.question()), began)


@router.get("/items/{id}/similar", responses={200: {"model": NearItems}})
def similar(request: Request, id: PathId, k: Count = 10) -> Response:
    """The items most similar to this one."""
    return json_response(NearItems(tuple(engine_of(request).similar_items(id, k))))


@router.get("/items/{id}/audience", responses={200: {"model": NearUsers}})
def audience(request: Request, id: PathId, k: Count = 10) -> Response:
    """The users to show an item to: those who match it best and do not have it yet."""
    return json_response(NearUsers(tuple(engine_of(request).audience(id, k))))


@router.get("/users/{id}/neighbours", responses={200: {"model": NearUsers}})
def neighbours(request: Request, id: PathId, k: Count = 10) -> Response:
    """The users most similar to this one."""
    return json_response(NearUsers(tuple(engine_of(request).neighbours(id, k))))


@router.get("/items/{id}/rank", responses={200: {"model": Ranks}})
def rank(request: Request, id: PathId, users: IdList = None) -> Response:
    """The rank of an item in the whole catalogue, 0 is best, for each user and by decayed popularity."""
    return json_response(engine_of(request).item_ranks(id, users or []))


async def _ask(request: Request, question: Question) -> BestItems:
    """Wait without a thread; concurrent questions are answered in one batch."""
    return await result_of(request, engine_of(request).ask(question))


def _explained(engine: Engine, user: str, found: BestItems) -> BestItems:
    reasons = engine.why(user, [item.id for item in found.items])
    return replace(found, items=tuple(replace(item, why=why) for item, why in zip(found.items, reasons, strict=True)))


def _response(found: BestItems, began: float) -> Response:
    return json_response(Recommendations(**vars(found), milliseconds=round((time.perf_counter() - began) * 1e3, 3)))
