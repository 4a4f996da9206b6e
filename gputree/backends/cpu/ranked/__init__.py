"""Growth over ranked lists, for criteria whose sums are not those of a histogram.

    rank       place of a row among the rows of its node, in the order of their targets
    list       the ranks of a node's rows in the order of a column, presorted once and partitioned
               stably; missing values are last
    element    a rank in a list, and two flags: the value equals the one before; it is missing
    sweep      one pass over a list, in which row after row moves to the left: the only part that
               knows the criterion

    node       s                t
    row        | 7   2   9   4 |     by target: rank 0, 1, 2, 3
    list f     | 2   0   3   1 |     row 9 has the lowest value of column f

Nodes of many rows are searched by column, in several threads; smaller ones become subtrees in one
call each. Neither changes the tree. Cuts that are drawn need no lists.
"""
