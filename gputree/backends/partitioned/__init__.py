"""One table in parts of rows: what parts count is summed, and one grower decides for all.

    parts           histograms, counts, ranges of entries: summed, so that their order is free
    rows of cuts    those of living bins, gathered as many at a time as there is room for
    small nodes     their rows are gathered, some nodes at a time, and grown whole

The tree is that of the table in one piece, field by field, wherever it is cut into parts.
"""
