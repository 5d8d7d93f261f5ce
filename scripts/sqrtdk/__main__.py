"""The command `sqrtdk`, also as `python -m sqrtdk`."""

import os
import sys

from sqrtdk import __version__
from sqrtdk.heads.command import main as audit

USAGE = """usage: sqrtdk audit FILE... [options]     judge attention heads; sqrtdk audit --help
       sqrtdk cite FIGURE|NUMBER|CLAIM    say how to cite it, from a folder of results; sqrtdk cite --help
       sqrtdk merge RESULTS RESULTS...    put runs of different seeds together; sqrtdk merge --help
       sqrtdk --version"""


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["audit"]:
        # Before NumPy is loaded: heads are small, and threads that wait for each other make them three times slower.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return audit(arguments[1:])
    if arguments[:1] == ["cite"]:
        try:
            from sqrtdk.report.cite import main as cite
        except ModuleNotFoundError as error:
            print(f"sqrtdk cite: needs the packages of the report ({error.name}); see README.md", file=sys.stderr)
            return 2
        return cite(arguments[1:])
    if arguments[:1] == ["merge"]:
        from sqrtdk.sampling.merging import main as merge

        return merge(arguments[1:])
    if arguments == ["--version"]:
        print(f"sqrtdk {__version__}")
        return 0
    asked = arguments in (["--help"], ["-h"])
    print(USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
