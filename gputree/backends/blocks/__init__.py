"""A table on the host, such as one mapped from files, that a CUDA device counts within a budget.

    all that growth reads fits      it goes to the device whole, in blocks: `backends.cuda` alone
    else                            parts of rows; those that fit stay on the device, the others
                                    pass through, two at a time

    host      |  part 0  |  part 1  |  part 2  |  part 3  | ...     codes, values, statistics
    device    |  part 0  |  part 1  |  stay                         codes, statistics, entries
              |  part 2  |  part 3  |  pass: one is copied while the other is counted
              |  values  |  values  |  of the columns that are asked for, the same way

What parts count is summed, and cuts inside bins are found by counting cells, as on a cluster
(`backends.workers`): the tree is that of the table in one piece, field by field.
"""
