"""What only the page asks for: the map."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from felrec.service.http.access import engine_of
from felrec.service.http.fast_route import Checked
from felrec.service.http.map import Cartographer, Map, Point
from felrec.service.http.parameters import Name
from felrec.service.http.problems import Problem, json_response
from felrec.service.http.schemas import Shape

router = APIRouter(prefix="/v1", tags=["map"], route_class=Checked)


class Place(Shape):
    """A user or an item on the map."""

    id: str
    title: str | None
    x: float
    y: float


class MapOfAll(Shape):
    """The map, or in words why there is none; while `working` it is worth asking again."""

    ready: bool
    working: bool = False
    message: str | None = None
    version: int | None = None
    users: list[Place] = Field(default_factory=list)
    items: list[Place] = Field(default_factory=list)


class MapMatch(Shape):
    """Scores beside the users and the items of the map of that version (0: there is none)."""

    version: int
    users: list[float]
    items: list[float]


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
    made = cartographer.latest()
    if not isinstance(made, Map):
        return json_response({"ready": False, "working": made.working, "message": made.message})
    places = {"users": _places(made.users), "items": _places(made.items)}
    return json_response({"ready": True, "version": made.version, **places})


@router.get("/map/match", responses={200: {"model": MapMatch}})
def get_match(cartographer: TheCartographer, user: OneId = None, item: OneId = None) -> Response:
    """How well everyone and everything on the map matches one user or one item, now: give one of the two."""
    if (user is None) == (item is None):
        raise Problem(422, "name one user or one item: /v1/map/match?user=ID or ?item=ID")
    version, users, items = cartographer.match(user=user, item=item)
    return json_response({"version": version, "users": users, "items": items})


def _places(points: tuple[Point, ...]) -> list[dict[str, Any]]:
    return [{"id": point.id, "title": point.title, "x": round(point.x, 3), "y": round(point.y, 3)} for point in points]
