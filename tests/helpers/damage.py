"""Damage to files: any JSON, in any place of a document."""

import json
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
from hypothesis import strategies as st

from gputree.persistence.container import npy_bytes

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["array", "dtype", "float", "tuple", "dict", "pruner", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(value):
    """Every container of a header with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def change_values(data, values):
    """An array that may have another value somewhere, and may end sooner."""
    place = data.draw(st.integers(0, max(values.size - 1, 0)))
    number = data.draw(st.sampled_from([-(2**31), -3, -2, -1, 0, 1, 2, 9, 2**31 - 1]))
    if values.size:
        values.flat[place] = number % 256 if values.dtype == np.uint8 else number
    if data.draw(st.booleans()):
        values = values[: data.draw(st.integers(0, len(values)))]
    return values


def change_header(data, text):
    """JSON, as bytes, of which any value, however deep, is another or left out."""
    header = json.loads(text)
    found = list(places(header))
    container, key = found[data.draw(st.integers(0, len(found) - 1))]
    if isinstance(container, dict) and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(ANYTHING)
    return json.dumps(header).encode()


MIB = 1 << 20


def unpack(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, parts, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@contextmanager
def at_most(n_bytes):
    """Require that the block uses no more memory than `n_bytes` at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= n_bytes
    finally:
        tracemalloc.stop()


def npy_of_zeros(shape, dtype="<f8"):
    return npy_bytes(np.zeros(shape, dtype))
