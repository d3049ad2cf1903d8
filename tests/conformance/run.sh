#!/bin/sh
# Compares weir with Hugging Face and TransformerLens. `make conformance` calls this once the programs are built.
#
#     WEIR_BIN=build/bin tests/conformance/run.sh [pytest arguments]
#
# The first run makes a private environment under build/venv (this needs the network); nothing else on the machine changes.
set -eu
cd "$(dirname "$0")/../.."
venv=${WEIR_VENV:-build/venv}
export WEIR_BIN="${WEIR_BIN:-$PWD/build/bin}"
if [ ! -x "$WEIR_BIN/trace" ]; then
    echo "conformance: $WEIR_BIN/trace is missing: run make first" >&2
    exit 2
fi
if [ ! -e "$venv/.complete-3" ]; then
    if ! "$venv/bin/python" -c 'import torch, transformers, transformer_lens, gguf, accelerate, h5py, peft, pytest, safetensors, xdist' 2>/dev/null; then
        echo "conformance: making $venv (torch, transformers, transformer-lens; about 2 GB)" >&2
        python3 -m venv "$venv"
        # torch alone first: WEIR_TORCH_INDEX may name an index with its processor-only build, which is much smaller.
        "$venv/bin/pip" install -q 'torch==2.13.0' ${WEIR_TORCH_INDEX:+--index-url "$WEIR_TORCH_INDEX"}
        "$venv/bin/pip" install -q 'transformers==5.24.*' 'transformer-lens==4.3.*' gguf accelerate h5py 'peft==0.21.*' pytest 'pytest-xdist==3.*' safetensors
    fi
    touch "$venv/.complete-3"
fi
# Two processes, as tests/run has two; conftest.py says which tests must stay together.
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider -n 2 --dist loadgroup --tb=short tests/conformance "$@"
