"""Attack a service on loopback and say which attacks it withstands.

    python benchmarks/attack.py [--only NAME,...] [--src NAME=PATH ...] [--json FILE] [--quick] [--list]

Each attack starts its own service from the code in PATH (a `src` folder; default: this checkout), is bounded in count
and time, and removes what it made. With several --src the table has one column for each, such as before and after:

    python benchmarks/attack.py --src before=../old/src --src after=src --json attack.json
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import FrameType

from attacks import (
    bodies,
    clocks,
    disk,
    erasure,
    files,
    fuzz,
    latency,
    manipulation,
    memory,
    process,
    requests,
    transport,
)
from attacks.target import Code
from attacks.verdict import Attack, Finding, NotTestedHere

HERE = Path(__file__).resolve().parents[1] / "src"
GROUPS = (transport, memory, latency, erasure, files, disk, clocks, manipulation, requests, bodies, process, fuzz)
ATTACKS = {attack.name: attack for group in GROUPS for attack in group.ATTACKS}


class TimeIsUp(BaseException):
    """Not an Exception, so that no attack takes it for an answer of the service."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Cut the block off after some time."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(attack: Attack, code: Code) -> Finding:
    """Run one attack. A failure of the attack itself counts against the service: it may have caused it."""
    try:
        with at_most(attack.seconds):
            return attack.run(code)
    except NotTestedHere as reason:
        return Finding(str(reason), None)
    except TimeIsUp:
        return Finding(f"cut off after {attack.seconds} s", False)
    except Exception as error:
        return Finding(f"the attack ended with {type(error).__name__}: {' '.join(str(error).split())[:300]}", False)


def table(codes: list[Code], findings: dict[str, dict[str, Finding]]) -> Iterator[str]:
    """The lines of a Markdown table, one row for each attack."""
    yield f"| attack | must be | {' | '.join(code.name for code in codes)} |"
    yield "|---|---|" + "---|" * len(codes)
    for name, found in findings.items():
        cells = [f"{found[code.name].measured} — **{found[code.name].verdict}**" for code in codes]
        yield f"| `{name}`: {ATTACKS[name].hole} | {ATTACKS[name].must_be} | {' | '.join(cells)} |"


def codes_of(given: list[str], quick: bool) -> list[Code]:
    """The checkouts to attack."""
    named = [text.partition("=") for text in given] or [("now", "=", str(HERE))]
    codes = [Code(name, Path(path).resolve(), quick) for name, _, path in named]
    for code in codes:
        if not (code.src / "felrec").is_dir():
            raise SystemExit(f"--src {code.name}={code.src}: there is no package felrec; name a src folder")
    return codes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="NAME,...", default=",".join(ATTACKS), help="attacks to run")
    parser.add_argument("--src", metavar="NAME=PATH", action="append", default=[], help="code under attack")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the findings to a file")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, only to check that everything runs")
    parser.add_argument("--list", action="store_true", help="list the attacks and stop")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{attack.name:<22}{attack.hole}" for attack in ATTACKS.values()))
        return
    names = asked.only.split(",")
    if unknown := set(names) - set(ATTACKS):
        raise SystemExit(f"unknown attacks: {', '.join(sorted(unknown))}; see --list")
    codes, findings = codes_of(asked.src, asked.quick), dict[str, dict[str, Finding]]()
    for name in names:
        findings[name] = {}
        for code in codes:
            began = time.perf_counter()
            found = findings[name][code.name] = run(ATTACKS[name], code)
            took = time.perf_counter() - began
            print(f"{name} ({code.name}, {took:.0f} s): {found.verdict}: {found.measured}", flush=True)
        if asked.json:
            asked.json.write_text(json.dumps(_as_json(findings), indent=2, ensure_ascii=False) + "\n")
    print(f"\n{date.today()}{', QUICK' if asked.quick else ''}\n", *table(codes, findings), sep="\n")
    raise SystemExit(any(found.holds is False for row in findings.values() for found in row.values()))


def _as_json(findings: dict[str, dict[str, Finding]]) -> dict[str, object]:
    return {
        name: {code: {"measured": found.measured, "verdict": found.verdict} for code, found in row.items()}
        for name, row in findings.items()
    }


if __name__ == "__main__":
    main()
