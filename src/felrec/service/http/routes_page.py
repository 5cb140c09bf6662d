"""Routes that only the page uses: the map."""

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
    """The application's cartographer, created at first use."""
    state = request.app.state
    if not hasattr(state, "cartographer"):
        state.cartographer = Cartographer(engine_of(request))
    cartographer: Cartographer = state.cartographer
    return cartographer


TheCartographer = Annotated[Cartographer, Depends(the_cartographer)]
OneId = Annotated[Name | None, Query()]


@router.get("/map", responses={200: {"model": MapOfAll}})
def get_map(cartographer: TheCartographer) -> Response:
    """Positions of users and items in the plane, similar ones close together; computed in the background."""
    return json_response(cartographer.latest())


@router.get("/map/match", responses={200: {"model": MapMatch}})
def get_match(cartographer: TheCartographer, user: OneId = None, item: OneId = None) -> Response:
    """The current match of all users and items on the map with one user or one item: give one of the two."""
    if (user is None) == (item is None):
        raise Problem(422, "give either a user or an item: /v1/map/match?user=ID or ?item=ID")
    return json_response(cartographer.match(user=user, item=item))
