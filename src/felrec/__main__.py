"""`python -m felrec`, for launchers that start modules, such as torchrun."""

import os
import sys

from felrec.cli import main

try:
    main()
except SystemExit as end:
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and isinstance(end.code, int | None):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(end.code or 0)  # threads of torch.distributed may abort a process that ends the usual way
    raise
