"""Recommendations, similar items, similar users, audiences and ranks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from felrec.answers.types import BestItems, NearItems, NearUsers, Ranks, Recommendations
from felrec.service.engine.cluster.member import AnyEngine
from felrec.service.engine.tickets import Arm, arm_of
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
    question = Question(id, (), k, exclude_seen, *filters, per_tag, offset, explore)
    engine = engine_of(request)
    arm = arm_of(id, engine.feedback.share)
    if arm == "trending":
        found = await run_in_threadpool(engine.trending, question)
    else:
        found = await result_of(request, engine.ask(question))
    if why:
        found = await run_in_threadpool(_explained, engine, id, found, arm)
    return _response(engine, question, found, arm, began)


@frequent.post("/recommendations", responses={200: {"model": Recommendations}}, openapi_extra=body_of(Session))
async def recommend_session(request: Request) -> Response:
    """The best items for an anonymous user with these items. Nothing is stored."""
    began, given = time.perf_counter(), await json_body(request, Session)
    engine, question = engine_of(request), given.question()
    found = await result_of(request, engine.ask(question))
    return _response(engine, question, found, "outside", began)


@router.get("/items/{id}/similar", responses={200: {"model": NearItems}})
def similar(request: Request, id: PathId, k: Count = 10) -> Response:
    """The items most similar to this one: those that the same users take, if the model counts them."""
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


def _explained(engine: AnyEngine, user: str, found: BestItems, arm: Arm) -> BestItems:
    """With reasons; a list of trending items has none, because nothing about the user made it."""
    names = [item.id for item in found.items]
    reasons = [()] * len(names) if arm == "trending" else engine.why(user, names)
    return replace(found, items=tuple(replace(item, why=why) for item, why in zip(found.items, reasons, strict=True)))


def _response(engine: AnyEngine, question: Question, found: BestItems, arm: Arm, began: float) -> Response:
    ticket = engine.feedback.ticket(arm, question.offset, len(found.items))
    tested = None if arm == "outside" else arm
    milliseconds = round((time.perf_counter() - began) * 1e3, 3)
    return json_response(Recommendations(**vars(found), milliseconds=milliseconds, ticket=ticket, arm=tested))
