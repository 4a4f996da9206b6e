"""Ways of emulating CUDA, as an option names them."""

import argparse

# Ways of emulation: the order of blocks, warps and lanes, whether accesses are checked, what
# every byte of fresh memory holds unless the option says, and whether it is NVRTC's PTX that runs.
WAYS = {
    "ascending": ("ascending", False, 0x01, False),
    "descending": ("descending", False, 0xFF, False),
    "checked": ("random", True, 0xCD, False),
    "ptx": ("ascending", False, 0x01, True),
    "ptx-checked": ("random", True, 0xCD, True),
}


def parse_ways(text: str) -> list[str]:
    """The ways of emulation that an option lists."""
    ways = text.split(",")
    try:
        list(map(parse_way, ways))
    except (KeyError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{error} is not among {', '.join(WAYS)}") from None
    return ways


def parse_way(text: str) -> tuple[str, bool, int, bool]:
    """A way, such as ``checked`` or ``ascending:ff``, as in `WAYS`."""
    way, _, fill = text.partition(":")
    order, check, default, is_ptx = WAYS[way]
    return order, check, int(fill, 16) & 0xFF if fill else default, is_ptx
