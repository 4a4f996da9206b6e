"""Blocks of rows that prediction takes at a time."""

from types import SimpleNamespace

import pytest

from gputree.prediction import answers


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("is_loaded", [False, True])
def test_blocks_cover_all_rows_in_order(is_loaded, n_threads):
    n, read = 100_000, []
    kernel = SimpleNamespace(is_loaded=is_loaded)
    blocks = answers._run_blocks(
        n, n_threads, lambda *block: read.append(block), lambda *block: block, kernel
    )
    assert [begin for begin, _ in blocks] == [0, *(end for _, end in blocks[:-1])]
    assert blocks[-1][1] == n
    assert sorted(read) == blocks
    sizes = [end - begin for begin, end in blocks]
    assert max(sizes) == answers.BLOCK_ROWS
    # The first shows what rows take, before much is interpreted.
    assert sizes[0] == (answers.BLOCK_ROWS if is_loaded else answers.FIRST_ROWS)
    assert all(size <= 2 * before for before, size in zip(sizes[:2], sizes[1:3], strict=True))
