"""What only the page asks for: the map."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from felrec.service.http.access import engine_of
from felrec.service.http.fast_route import Checked
from felrec.service.http.map import Cartographer, MapMatch, MapOfAll
from felrec.service.http.parameters import Name
from felrec.service.http.problems import Problem
from felrec.service.http.responses import json_response

router = APIRouter(prefix="/v1", tags=["map"], route_class=Checked)


async def the_cartographer(request: Request) -> Cartographer:
    """The one of the application, made when it is first asked for."""
    state = request.app.state
    if not hasattr(state, "cartographer"):
        state.cartographer = Cartographer(engine_of(request))
    cartographer: Cartographer = state.cartographer
    return cartographer


TheCartographer = Annotated[Cartographer, Depends(the_cartographer)]
OneId = Annotated[Name | None, Query()]


@router.get("/map", responses={200: {"model": MapOfAll}})
def get_map(cartographer: TheCartographer) -> Response:
    """Users and items in the plane, near ones together; made in the background when first asked for."""
    return json_response(cartographer.latest())


@router.get("/map/match", responses={200: {"model": MapMatch}})
def get_match(cartographer: TheCartographer, user: OneId = None, item: OneId = None) -> Response:
    """How well all users and items on the map match one user or one item, now: give one of the two."""
    if (user is None) == (item is None):
        raise Problem(422, "name one user or one item: /v1/map/match?user=ID or ?item=ID")
    return json_response(cartographer.match(user=user, item=item))
