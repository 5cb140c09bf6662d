"""The service over HTTP: routes, limits, API keys, the page."""
