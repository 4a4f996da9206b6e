"""A child of `test_damaged_files.py`: read damaged copies of a file, and report each result.

    python fuzz_files.py FILE FIRST LAST

A line for each seed from FIRST to LAST: the seed before the file is read, so that whoever dies of
it is known, and then how it ended. What ended in another way than a ValueError that names the file
is reported with its traceback.
"""

import random
import sys
import traceback
from pathlib import Path

from gputree import load_model, read_json
from gputree.datasets import open_batches, read_table

LENGTHS = (1, 1, 2, 4, 8, 8, 30)
HUGE = [2**k - d for k in (31, 32, 62, 63, 64) for d in (0, 1, 8)]


def damaged(content: bytes, seed: int) -> bytes:
    """Bytes changed, put in, left out or cut off; numbers of exabytes among them."""
    rng = random.Random(seed)
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, length = rng.randrange(len(out)), rng.choice(LENGTHS)
        kind = rng.randrange(7)
        if kind == 0:
            out[at : at + length] = rng.randbytes(length)
        elif kind == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            out[at : at + 8] = (rng.choice(HUGE) % 2**64).to_bytes(8, "little")
        elif kind == 3:  # the same as a number of Thrift's, of any length
            out[at : at + 10] = b"\xff" * rng.randrange(4, 10) + b"\x7f"
        elif kind == 4:
            del out[at : at + length]
        elif kind == 5:
            out[at:at] = rng.randbytes(length)
        else:
            out[at : at + length] = bytes(length)
    if rng.random() < 0.1:
        del out[rng.randrange(len(out)) :]
    return bytes(out) or b"x"


def read(path: Path) -> None:
    """Every way in which a file of this kind is read."""
    if path.name.endswith(".gputree"):
        load_model(path)
    elif path.name.endswith(".json"):
        read_json(path)
    else:
        refusal = None
        try:
            read_table(path, "t", categorical=["k"], missing=["?"])
        except ValueError as error:
            refusal = error
        for _ in open_batches(path, "t", categorical=["k"]):
            pass
        if refusal is not None:
            raise refusal


def main(path: Path, first: int, last: int) -> None:
    content = path.read_bytes()
    copy = path.with_name(f"damaged {path.name}")
    for seed in range(first, last):
        copy.write_bytes(damaged(content, seed))
        print(seed, end=" ", flush=True)
        try:
            read(copy)
        except ValueError as error:
            print("refused" if str(copy) in str(error) else f"without its name: {error!r}")
        except BaseException:
            print("other error", traceback.format_exc().replace("\n", "\n    "))
        else:
            print("read")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
