"""Rules beside the tree that they are made of, and beside other rule learners.

    python -m benchmarks.rules                          # every classification table of GPUTREE_DATA
    python -m benchmarks.rules adult kddcup99_corrected
    python -m benchmarks.rules --peers c50py RIPPER --limit 30

Accuracies, sizes and seconds are means over 5 stratified folds; of tables of more than 10,000 rows
those of the first fold. Trees are C4.5's; rules are made of the unpruned one. Text and holes stay
as they are. Seconds are the least of three runs for gputree, and of one run for peers, which have
`--limit` seconds for a table, in a process of their own. RIPPER (wittgenstein) and the greedy rule
list (imodels) are for two classes.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from benchmarks.data import frame_table, real_names
from gputree import C45Classifier, to_rules

RUNS = 3
FOLDS = 5
MOST_FOLDED = 10_000  # rows; of larger tables one fold is enough
PEERS = {"c50py": "c50py", "RIPPER": "wittgenstein", "rule list": "imodels"}


class Outcome(NamedTuple):
    """What one learner made of one table."""

    size: int  # leaves, or rules
    conditions: int  # of all rules
    accuracy: float
    seconds: float


Parts = tuple[Any, NDArray, Any, NDArray]


def folds(name: str) -> list[Parts]:
    """Tables and labels to learn from, and to test on: 5 folds, or the first of a large table."""
    table = frame_table(name)
    found = []
    for learned, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(
        table.X, table.y
    ):
        X = [table.X.iloc[rows].reset_index(drop=True) for rows in (learned, held)]
        found.append((X[0], table.y[learned], X[1], table.y[held]))
        if table.y.size > MOST_FOLDED:
            break
    return found


def mean(outcomes: list[Outcome]) -> Outcome:
    """The mean of each figure over folds."""
    return Outcome(*np.mean(outcomes, axis=0).tolist())


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the least seconds of some runs, after one that may compile."""
    work()
    found, seconds = None, []
    for _ in range(RUNS):
        begin = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - begin)
    return found, min(seconds)


def measure(part: Parts) -> dict[str, Outcome]:
    """The unpruned tree, the pruned tree and the rules of the unpruned one."""
    X, y, X_test, y_test = part
    whole, seconds = timed(lambda: C45Classifier(pruning=None).fit(X, y))
    found = {"unpruned": Outcome(whole.get_n_leaves(), 0, whole.score(X_test, y_test), seconds)}
    pruned, seconds = timed(lambda: C45Classifier().fit(X, y))
    found["pruned"] = Outcome(pruned.get_n_leaves(), 0, pruned.score(X_test, y_test), seconds)
    rules, seconds = timed(lambda: to_rules(whole, X, y))
    size = len(rules.rules_), rules.rules_.n_conditions
    return found | {"rules": Outcome(*size, rules.score(X_test, y_test), seconds)}


# -------------------------------------------------------------------- peers
def measure_c50py(part: Parts) -> Outcome:
    """Rules of c50py."""
    from c50py import C5RulesClassifier

    X, y, X_test, y_test = part
    begin = time.perf_counter()
    rules = C5RulesClassifier().fit(X, y)
    seconds = time.perf_counter() - begin
    size = len(rules.rules_), sum(len(rule.conditions) for rule in rules.rules_)
    return Outcome(*size, float((rules.predict(X_test) == y_test).mean()), seconds)


def measure_ripper(part: Parts) -> Outcome:
    """Rules of wittgenstein's RIPPER for the rarer of two classes; holes are a category."""
    from wittgenstein import RIPPER

    X, y, X_test, y_test = part
    labels, counts = np.unique(y, return_counts=True)
    if labels.size != 2:
        raise ValueError("RIPPER is for two classes.")
    rare, common = labels[counts.argmin()], labels[counts.argmax()]
    X, X_test = filled(X), filled(X_test)
    begin = time.perf_counter()
    rules = RIPPER(random_state=0)
    rules.fit(X, y=y, pos_class=rare)
    seconds = time.perf_counter() - begin
    answer = np.where(np.array(rules.predict(X_test), bool), rare, common)
    found = rules.ruleset_.rules
    size = len(found), sum(len(rule.conds) for rule in found)
    return Outcome(*size, float((answer == y_test).mean()), seconds)


def measure_rule_list(part: Parts) -> Outcome:
    """The greedy rule list of imodels, for two classes; a column of 0 and 1 for each category."""
    import pandas as pd
    from imodels import GreedyRuleListClassifier

    X, y, X_test, y_test = part
    labels, codes = np.unique(y, return_inverse=True)
    if labels.size != 2:
        raise ValueError("The rule list is for two classes.")
    both = pd.get_dummies(pd.concat([filled(X), filled(X_test)])).to_numpy(np.float64)
    begin = time.perf_counter()
    rules = GreedyRuleListClassifier().fit(both[: y.size], codes)
    seconds = time.perf_counter() - begin
    answer = labels[np.asarray(rules.predict(both[y.size :]), int)]
    return Outcome(len(rules.rules_), len(rules.rules_), float((answer == y_test).mean()), seconds)


def filled(X: Any) -> Any:
    """Holes in text as a category, in numbers as the median."""
    text = [c for c in X if X[c].dtype.kind not in "fiu"]
    return X.fillna({c: "?" for c in text} | X.drop(columns=text).median().to_dict())


LEARNERS = {"c50py": measure_c50py, "RIPPER": measure_ripper, "rule list": measure_rule_list}


def in_time(peer: str, name: str, limit: float) -> Outcome | str:
    """What a peer makes of a table in a process of its own, or why there is nothing."""
    command = [sys.executable, "-m", "benchmarks.rules", name, "--only", peer]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return f"> {limit:.0f} s"
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [""])[-1]
        return "" if "two classes" in last else f"error: {last.partition(':')[0]}"
    return Outcome(*json.loads(run.stdout.splitlines()[-1]))


# -------------------------------------------------------------------- table
def cells(found: Outcome | str) -> list[str]:
    """Rules, accuracy and seconds of a peer."""
    if isinstance(found, str):
        return [found, "", ""]
    return [f"{found.size:,.0f}", f"{found.accuracy:.3f}", f"{found.seconds:.3g}"]


def lines(names: list[str], peers: list[str], limit: float) -> Iterator[str]:
    """The table as Markdown, line by line."""
    head = "| table | rows | leaves | pruned | rules | conditions | accuracy, unpruned | pruned "
    head += "| rules | seconds, unpruned | pruned | rules of the unpruned tree |"
    head += "".join(f" {p}, rules | accuracy | seconds |" for p in peers)
    yield head
    yield "|" + "---|" * (head.count("|") - 1)
    for name in names:
        measured = [measure(part) for part in folds(name)]
        found = {learner: mean([one[learner] for one in measured]) for learner in measured[0]}
        whole, pruned, rules = found["unpruned"], found["pruned"], found["rules"]
        row = [name, f"{frame_table(name).y.size:,}", f"{whole.size:,.0f}"]
        row += [f"{pruned.size:,.0f}", f"{rules.size:,.0f}", f"{rules.conditions:,.0f}"]
        row += [f"{one.accuracy:.3f}" for one in found.values()]
        row += [f"{one.seconds:.3g}" for one in found.values()]
        for peer in peers:
            row += cells(in_time(peer, name, limit))
        yield "| " + " | ".join(row) + " |"


def versions(peers: list[str]) -> str:
    """What ran."""
    found = [f"Python {platform.python_version()}"]
    for package in ["numpy", "numba", "scikit-learn", *(PEERS[peer] for peer in peers)]:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS))
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--only", choices=list(PEERS), help="one peer, in this process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only:
        learn = LEARNERS[options.only]
        print(json.dumps(mean([learn(part) for part in folds(options.tables[0])])))
        return
    print(versions(options.peers), flush=True)
    for line in lines(options.tables or real_names(), options.peers, options.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
