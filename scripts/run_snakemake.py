"""Run Snakemake once the files of its configuration can be read; it reads them before anything here could say why not.

python scripts/run_snakemake.py --cores all --configfile config/quick.yaml
"""

import argparse
import sys
from pathlib import Path

from sqrtdk.config import loading
from sqrtdk.config.messages import ConfigError

OWN = Path(__file__).resolve().parent.parent / "config/config.yaml"


def main(arguments: list[str]) -> None:
    """Run Snakemake, or say within one page why the configuration cannot be read."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", type=Path, nargs="+", default=[])
    try:
        for path in [OWN, *parser.parse_known_args(arguments)[0].configfile]:
            loading.load_file(path)
    except ConfigError as error:
        sys.exit(str(error))
    from snakemake import cli

    cli.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
