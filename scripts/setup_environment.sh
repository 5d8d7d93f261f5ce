#!/bin/sh
# Make .venv hold exactly the packages that a lock file pins. Costs nothing when it already does.
#
#   sh scripts/setup_environment.sh requirements.txt
#
# PYTHON=python3.12 picks the interpreter. Otherwise the first supported one on the PATH is taken.
# An environment is whole when it holds a stamp, a copy of the lock file. Whatever lacks it (a killed run, another
# lock, another folder) is made anew: packages that were left half-installed cannot be told from whole ones.
set -eu
cd "$(dirname "$0")/.."
lock=$1
stamp=.venv/$lock
unset PYTHONPATH PYTHONHOME
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

contents() { # the folder counts too, because programs in .venv/bin name it
    pwd
    cat "$1"
}

whole() {
    [ -f ".venv/$1" ] && contents "$1" | cmp -s - ".venv/$1" && .venv/bin/python -c '' 2>/dev/null &&
        { [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -V 2>&1)" = "$(.venv/bin/python -V 2>&1)" ]; }
}

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11; fi
    for candidate; do
        if supported "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11, 3.12 or 3.13 is needed, and none was found as: $*." >&2
    echo "Install one of them, or name it: make report PYTHON=/path/to/python3.13" >&2
    return 1
}

create() { # a Python without ensurepip (Debian without python3-venv) borrows the pip of the system
    "$1" -m venv --clear .venv >/dev/null 2>&1 && return
    "$1" -m venv --clear --without-pip .venv && "$1" -m pip -qq --python .venv/bin/python install pip && return
    echo "$1 can make no virtual environment: install its venv module or pip (Debian: apt install python3-venv)." >&2
    return 1
}

if whole "$lock"; then exit 0; fi
if whole requirements.txt; then
    echo "Adding the packages of $lock to .venv"
    rm -f .venv/requirements*.txt # until it is whole again
else
    python=$(find_python)
    echo "Installing the packages of $lock into .venv with $("$python" -V) (once)"
    rm -rf .venv
    create "$python"
fi
# Without dependencies: the lock is complete, which the check proves, so nothing unpinned can come in.
.venv/bin/python -m pip install -qq --no-deps -r "$lock"
.venv/bin/python -m pip check >/dev/null || .venv/bin/python -m pip check
contents requirements.txt >.venv/requirements.txt
contents "$lock" >"$stamp"
