"""Routes for frequent requests, hundreds per second."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from inspect import signature
from typing import Any, ClassVar, get_type_hints
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ConfigDict, ValidationError, create_model
from starlette.routing import BaseRoute
from starlette.types import Scope

from felrec.service.http.headers import header
from felrec.service.http.problems import Problem

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def check_names(given: Iterable[str], known: frozenset[str]) -> None:
    """Refuse unknown parameters, so that a misspelt filter is not ignored silently."""
    for name in given:
        if name not in known:
            advice = f"this path accepts {', '.join(sorted(known))}" if known else "this path accepts no parameters"
            raise Problem(422, f"unknown parameter {name[:100]!r}; {advice}")


class Checked(APIRoute):
    """A normal route that refuses unknown parameters."""

    def get_route_handler(self) -> Handler:
        """The handler of FastAPI, after that check."""
        usual, known = super().get_route_handler(), frozenset(field.alias for field in self.dependant.query_params)

        async def handle(request: Request) -> Response:
            check_names(request.query_params, known)
            return await usual(request)

        return handle


class FastRoute(APIRoute):
    """Validates path, query and headers in one pass: FastAPI's own parsing takes longer than the rest of a request.

    Parameters are declared and described as usual. The endpoint is async, has the request as its first parameter and
    returns a Response. It reads the body itself and may not use dependencies.
    """

    checks_names: ClassVar[bool] = True

    def get_route_handler(self) -> Handler:
        """The endpoint, after one validation of its parameters."""
        endpoint, declared = self.endpoint, self.dependant
        hints = get_type_hints(endpoint, include_extras=True)
        parameters = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in signature(endpoint).parameters.items()
            if name != "request"
        }
        if not parameters:
            return self._without_parameters()
        asked, headed = declared.query_params, declared.header_params
        outside = {field.name: field.alias for field in (*declared.path_params, *asked, *headed)}
        named = ConfigDict(alias_generator=outside.__getitem__)
        model: Any = create_model("Parameters", __config__=named, **parameters)  # type: ignore[call-overload]
        several = frozenset(field.alias for field in asked if "list[" in str(hints[field.name]))
        known = frozenset(field.alias for field in asked)
        of_headers = [(field.alias, field.alias.lower().encode()) for field in headed]

        async def handle(request: Request) -> Response:
            scope = request.scope
            given: dict[str, Any] = {**scope["path_params"]}
            if query := _query(scope):
                check_names((name for name, _ in query), known)
                given |= dict(query)  # of a repeated parameter the last one counts
                given |= {name: [text for other, text in query if other == name] for name in several & given.keys()}
            for alias, name in of_headers:
                if (text := header(scope, name, None)) is not None:
                    given[alias] = text
            try:
                checked = model(**given)
            except ValidationError as error:
                raise RequestValidationError(error.errors()) from None
            answer: Response = await endpoint(request, **vars(checked))
            return answer

        return handle

    def _without_parameters(self) -> Handler:
        endpoint, checks = self.endpoint, self.checks_names

        async def handle(request: Request) -> Response:
            if checks:
                check_names((name for name, _ in _query(request.scope)), frozenset())
            answer: Response = await endpoint(request)
            return answer

        return handle


class ProbeRoute(FastRoute):
    """A frequent route without parameters that ignores those it is given, as probes may add some."""

    checks_names = False


def _query(scope: Scope) -> list[tuple[str, str]]:
    query: bytes = scope["query_string"]
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else []


class FrequentRoutes:
    """Finds the handler of a request to a frequent route, which FastAPI knows and describes too."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._by_path: dict[tuple[str, str], tuple[FastRoute, Handler]] = {}
        self._by_pattern: list[tuple[str, FastRoute, Handler]] = []
        for route in routes:
            assert isinstance(route, FastRoute), f"{route} is no fast route"
            handle, methods = route.get_route_handler(), route.methods or set()
            if route.param_convertors:
                self._by_pattern += [(method, route, handle) for method in methods]
            else:
                self._by_path |= {(method, route.path): (route, handle) for method in methods}

    def find(self, scope: Scope) -> Handler | None:
        """The handler of a request, None if its route is not frequent; the scope then has what a router adds."""
        method, path = scope["method"], scope["path"]
        if found := self._by_path.get((method, path)):
            scope["route"], scope["path_params"] = found[0], {}
            return found[1]
        for of_route, route, handle in self._by_pattern:
            if method == of_route and (match := route.path_regex.match(path)):
                scope["route"], scope["path_params"] = route, match.groupdict()
                return handle
        return None
