#!/bin/sh
# Run the tests of capture and monitor with an installed PyTorch, and write the table of architectures into the docs.
#
#   make test-frameworks PYTHON=elsewhere/bin/python
set -eu
unset CDPATH
cd -P -- "$(dirname -- "$0")/../.."
python=${PYTHON:-python3}
missing=
for name in torch transformers numpy scipy pytest; do
    "$python" -c "import $name" 2>/dev/null || missing="$missing $name"
done
if [ -n "$missing" ]; then
    cat >&2 <<END
$python lacks$missing. In an environment of its own:
    python3 -m venv frameworks
    frameworks/bin/pip install torch transformers numpy scipy pytest
    make test-frameworks PYTHON=frameworks/bin/python
The build of PyTorch for CPUs alone is a tenth of the size: PyTorch's site, under "Get Started" and "CPU", names what to
add to the second line for it. No weights and no tokenizers are fetched.
END
    exit 2
fi
export HF_HUB_OFFLINE=1
exec "$python" -m pytest -q -W default -p no:cacheprovider tests/frameworks --table docs/frameworks.md "$@"
