"""Routes for frequent requests, hundreds per second."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from inspect import signature
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ConfigDict, ValidationError, create_model

from felrec.service.http.problems import Problem


def check_names(given: Iterable[str], known: frozenset[str]) -> None:
    """Refuse unknown parameters, so that a misspelt filter is not ignored silently."""
    for name in given:
        if name not in known:
            advice = f"this path accepts {', '.join(sorted(known))}" if known else "this path accepts no parameters"
            raise Problem(422, f"unknown parameter {name[:100]!r}; {advice}")


class Checked(APIRoute):
    """A normal route that refuses unknown parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
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

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint, after one validation of its parameters."""
        endpoint, declared = self.endpoint, self.dependant
        hints = get_type_hints(endpoint, include_extras=True)
        parameters = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in signature(endpoint).parameters.items()
            if name != "request"
        }
        asked, headed = declared.query_params, declared.header_params
        outside = {field.name: field.alias for field in (*declared.path_params, *asked, *headed)}
        named = ConfigDict(alias_generator=outside.__getitem__)
        model: Any = create_model("Parameters", __config__=named, **parameters)  # type: ignore[call-overload]
        several = [field.alias for field in asked if "list[" in str(hints[field.name])]
        single = [field.alias for field in asked if field.alias not in several]
        of_headers = [field.alias for field in headed]

        known = frozenset((*single, *several))

        async def handle(request: Request) -> Response:
            query, headers, given = request.query_params, request.headers, dict(request.path_params)
            check_names(query, known)
            given |= {name: query[name] for name in single if name in query}
            given |= {name: query.getlist(name) for name in several if name in query}
            given |= {name: headers[name] for name in of_headers if name in headers}
            try:
                checked = model(**given)
            except ValidationError as error:
                raise RequestValidationError(error.errors()) from None
            answer: Response = await endpoint(request, **vars(checked))
            return answer

        return handle
