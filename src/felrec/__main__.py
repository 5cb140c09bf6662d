"""`python -m felrec`, for launchers that start modules, such as torchrun."""

from felrec.cli import main

main()
