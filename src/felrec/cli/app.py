"""The entry point `felrec`: its commands, and the handler that prints every error as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from felrec.cli import (
    audit,
    backup,
    compare,
    consume,
    datasets,
    demo,
    evaluate,
    export,
    forget,
    import_log,
    inspect,
    items,
    keys,
    merge_recs,
    models,
    pretrain,
    recommend,
    replay,
    reproduce,
    serve,
    switch,
    train,
    tune,
    verify,
)
from felrec.errors import FelrecError
from felrec.version import __version__

app = typer.Typer(
    name="felrec",
    help="Recommend items, including brand-new ones, from (user, item, time) events alone.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: fast, and the same on a terminal, in a pipe and in docs/cli.md
    pretty_exceptions_enable=False,
)
app.add_typer(datasets.app, name="datasets")
app.command("models")(models.models)
app.command("inspect")(inspect.inspect_log)
app.command("train")(train.train)
app.command("pretrain")(pretrain.pretrain)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("tune")(tune.tune)
app.command("recommend")(recommend.recommend)
app.command("merge-recs")(merge_recs.merge_recs)
app.command("serve")(serve.serve)
app.command("consume")(consume.consume)
app.command("import")(import_log.import_log)
app.add_typer(items.app, name="items")
app.command("replay")(replay.replay)
app.command("switch")(switch.switch)
app.command("forget")(forget.forget)
app.command("export")(export.export)
app.command("backup")(backup.backup)
app.command("verify")(verify.verify)
app.add_typer(keys.app, name="keys")
app.command("audit")(audit.audit)
app.command("demo")(demo.demo)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Recommend items, including brand-new ones, from (user, item, time) events alone."""
    if version:
        typer.echo(f"felrec {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 on success, 2 with one line on stderr for an error that the user can fix."""
    try:
        code = get_command(app).main(args=arguments, prog_name="felrec", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (`felrec models | head -1`): flushing at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except FelrecError as error:
        code = _fail(str(error))
    except OSError as error:
        what = error.filename or "input or output"
        code = _fail(f"{what}: {error.strerror or error}; check the path, permissions and disk space")
    except Exception as error:
        if not hasattr(error, "format_message"):  # only usage errors have it; their class moves between typer and click
            raise
        context, message = getattr(error, "ctx", None), error.format_message().rstrip(".?")
        if "extra argument" in message and context and any(one.name == "log" for one in context.command.params):
            message += "; to read several files as one log, quote their pattern, as in 'log/*.csv'"
        code = _fail(f"{message}; see {context.command_path if context else 'felrec'} --help")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> int:
    print("felrec:", " ".join(message.split()), file=sys.stderr)
    return 2
