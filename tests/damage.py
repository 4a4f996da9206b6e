"""What files are damaged with: any JSON, in any place of a document."""

from hypothesis import strategies as st

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
