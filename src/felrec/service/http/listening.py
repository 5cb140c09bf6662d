"""The address that a service may listen on. Imports little, because it is checked before anything slow is loaded."""

from __future__ import annotations

import ipaddress
import resource
import socket

from felrec.errors import ConfigError
from felrec.service.http.keys import KeyFile

OWN_FILES = 1_000  # open files besides connections, and connections that are being accepted or closed


def check_access(host: str, keys: KeyFile | None) -> None:
    """Raise ConfigError for an address that other machines can reach if there are no keys."""
    if keys is not None and not keys.entries():
        make = f"felrec keys add --keys {keys.path} --scope read --scope write"
        raise ConfigError(f"{keys.path} has no keys yet; create one with {make}")
    if keys is None and not is_local(host):
        raise ConfigError(
            f"--host {host} can be reached from other machines, so it needs API keys: create one with felrec keys add"
            " --scope read --scope write, then start with --keys FILE"
        )


def is_local(host: str) -> bool:
    """Whether an address is a loopback address.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to this address; ConfigError if that fails."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --port or --host"
        ) from None
    return listener


def allow_connections(count: int) -> None:
    """Let this process open so many connections; ConfigError if the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + OWN_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"--max-connections {count} needs {needed} open files, and the system allows {hard};"
            f" choose at most {max(0, hard - OWN_FILES)}, or raise the limit (ulimit -Hn, LimitNOFILE in systemd)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
