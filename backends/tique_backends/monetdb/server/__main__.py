"""A server as a program: prints its URL, and stops when its input ends."""

from __future__ import annotations

import argparse
import sys

from tique_backends.monetdb.server.errors import ServerError
from tique_backends.monetdb.server.process import serve


def main() -> None:
    """Run the server that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m tique_backends.monetdb.server")
    parser.add_argument("directory")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--socket")
    parser.add_argument("--no-sequencer", action="store_false", dest="sequencer")
    arguments = parser.parse_args()
    try:
        serve(
            arguments.directory,
            port=arguments.port,
            socket=arguments.socket,
            sequencer=arguments.sequencer,
            ready=lambda url: print(url, flush=True),
            lifeline=sys.stdin.fileno(),
        )
    except ServerError as error:
        sys.exit(str(error))


main()
