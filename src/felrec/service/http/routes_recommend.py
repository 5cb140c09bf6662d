"""Recommendations, and what lies near an item or a user."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Question, ScoredItem, ScoredUser
from felrec.service.http.access import engine_of, json_only
from felrec.service.http.fast_route import Checked, FastRoute
from felrec.service.http.parameters import Count, ExcludeSeen, IdList, PathId, TagList
from felrec.service.http.problems import json_response
from felrec.service.http.schemas import NearItems, NearUsers, Ranks, Recommendations, Session

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=Checked)
often = APIRouter(prefix="/v1", tags=["recommendations"], route_class=FastRoute)


@often.get("/users/{id}/recommendations", responses={200: {"model": Recommendations}})
async def recommend(
    request: Request,
    id: PathId,
    k: Count = 10,
    exclude_seen: ExcludeSeen = None,
    candidates: IdList = None,
    tags: TagList = None,
    why: Annotated[bool, Query(description="also say which items of the history weigh most")] = False,
) -> Response:
    """The best items for a user, known or not, out of the whole catalogue or of `candidates`."""
    began = time.perf_counter()
    answer = await _answer(request, Question(id, (), k, exclude_seen, candidates, tags or ()))
    if why:
        await run_in_threadpool(_explain, engine_of(request), id, answer)
    return json_response({"user": id, **answer, "milliseconds": _milliseconds(began)})


@router.post("/recommendations", responses={200: {"model": Recommendations}}, dependencies=[Depends(json_only)])
async def recommend_session(request: Request, session: Session) -> Response:
    """The best items for someone unknown who had these items. Nothing is kept."""
    began, filters = time.perf_counter(), (session.exclude_seen, session.candidates, session.tags)
    answer = await _answer(request, Question(None, session.items, session.k, *filters))
    return json_response({**answer, "milliseconds": _milliseconds(began)})


@router.get("/items/{id}/similar", responses={200: {"model": NearItems}})
def similar(request: Request, id: PathId, k: Count = 10) -> Response:
    """The items most like this one."""
    return json_response({"items": list(map(_item, engine_of(request).similar_items(id, k)))})


@router.get("/items/{id}/audience", responses={200: {"model": NearUsers}})
def audience(request: Request, id: PathId, k: Count = 10) -> Response:
    """The users to show an item to: those who match it best and have not had it."""
    return json_response({"users": _users(engine_of(request).audience(id, k))})


@router.get("/users/{id}/neighbours", responses={200: {"model": NearUsers}})
def neighbours(request: Request, id: PathId, k: Count = 10) -> Response:
    """The users most like this one."""
    return json_response({"users": _users(engine_of(request).neighbours(id, k))})


@router.get("/items/{id}/rank", responses={200: {"model": Ranks}})
def rank(request: Request, id: PathId, users: IdList = None) -> Response:
    """The place of an item in the whole catalogue of each user, 0 being best, and by decayed popularity."""
    found = engine_of(request).item_ranks(id, users or [])
    return json_response(
        {
            "item": found.item,
            "events": found.events,
            "catalogue": found.catalogue,
            "users": [{"user": user, "rank": place} for user, place in found.users],
            "decayed_popularity": found.popularity,
        }
    )


async def _answer(request: Request, question: Question) -> dict[str, Any]:
    """Wait without a thread: whoever asks meanwhile is answered in the same pass."""
    found = await asyncio.wrap_future(engine_of(request).ask(question))
    return {"known": found.known, "items": list(map(_item, found.items)), "ignored": list(found.ignored)}


def _explain(engine: Engine, user: str, answer: dict[str, Any]) -> None:
    reasons = engine.why(user, [item["id"] for item in answer["items"]])
    for item, why in zip(answer["items"], reasons, strict=True):
        item["why"] = [{"id": reason.id, "title": reason.title, "weight": reason.weight} for reason in why]


def _item(item: ScoredItem) -> dict[str, Any]:
    return {"id": item.id, "score": item.score, "title": item.title, "tags": list(item.tags)}


def _users(users: Sequence[ScoredUser]) -> list[dict[str, Any]]:
    return [{"id": user.id, "score": user.score} for user in users]


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1e3, 3)
