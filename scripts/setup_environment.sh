#!/bin/sh
# Make .venv hold exactly the packages that a lock file pins. Costs nothing when it already does.
#
#   sh scripts/setup_environment.sh requirements.txt
#
# PYTHON=python3.12 picks the interpreter. Otherwise the first supported one on the PATH is taken.
# An environment is whole when it holds a stamp, a copy of the lock file. Whatever lacks it (a killed run, another
# lock, another folder) is made anew: packages that were left half-installed cannot be told from whole ones.
# What the shell inherits must send none of this elsewhere: it starts in the folder above this file, or not at all.
set -eu
unset CDPATH # or cd looks for the folder there first
case $0 in /*) self=$0 ;; *) self=$PWD/$0 ;; esac
lock=${1:-}
stamp=.venv/$lock

if ! { cd -P -- "$(dirname -- "$self")/.." && [ scripts/setup_environment.sh -ef "$self" ]; }; then
    echo "$self lies in no folder scripts/ of a project, so what to set up is not known; nothing was changed." >&2
    exit 1
fi
case $lock in */*) lock= ;; esac
if ! [ -f "$lock" ]; then
    echo "Name a lock file of $PWD, as in: sh scripts/setup_environment.sh requirements.txt; nothing was changed." >&2
    exit 1
fi

# Of what Python and pip inherit, how packages are reached stays; what changes them or where they go does not.
for name in $(env | sed -n -e 's/^\(PYTHON[A-Za-z0-9_]*\)=.*/\1/p' -e 's/^\(PIP_[A-Za-z0-9_]*\)=.*/\1/p'); do
    case $name in
    PYTHON) ;;
    PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_NO_INDEX | PIP_FIND_LINKS | PIP_CONFIG_FILE | PIP_KEYRING_PROVIDER) ;;
    PIP_PROXY | PIP_CERT | PIP_CLIENT_CERT | PIP_TRUSTED_HOST | PIP_TIMEOUT | PIP_DEFAULT_TIMEOUT | PIP_RETRIES) ;;
    PIP_CACHE_DIR | PIP_NO_CACHE_DIR | PIP_NO_BINARY | PIP_ONLY_BINARY | PIP_PREFER_BINARY) ;;
    *) unset "$name" ;;
    esac
done
export PYTHONUTF8=1 PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

contents() { # the folder counts too, because programs in .venv/bin name it; reached through a link it is the same
    pwd -P
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
