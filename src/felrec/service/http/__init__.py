"""The service over HTTP: routes, middleware, API keys, the page."""
