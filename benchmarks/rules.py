"""Rules beside the tree that they are made of, and beside other rule learners.

    python -m benchmarks.rules                          # every classification table of GPUTREE_DATA
    python -m benchmarks.rules adult kddcup99_corrected
    python -m benchmarks.rules --peers c50py PART RIPPER --rows 400 --limit 30

Accuracies, sizes and seconds are means over 5 stratified folds; of tables of more than 10,000 rows
those of the first fold. Trees are C4.5's; rules are made of the unpruned one. Text and holes stay
as they are. Seconds are the least of three runs for gputree, and of one run for peers, which have
`--limit` seconds for a table, in a process of their own. PART is Weka's, from the weka.jar that
WEKA names (python-weka-wrapper3 has one), run by java. RIPPER (wittgenstein) and the greedy rule
list (imodels) are for two classes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.data import frame_table, real_names
from gputree import C45Classifier, to_rules

RUNS = 3
FOLDS = 5
MOST_FOLDED = 10_000  # rows; of larger tables one fold is enough
PEERS = {
    "c50py": "c50py",
    "PART": "python-weka-wrapper3",
    "RIPPER": "wittgenstein",
    "rule list": "imodels",
}


class Outcome(NamedTuple):
    """What one learner made of one table."""

    size: int  # leaves, or rules
    conditions: int  # of all rules
    accuracy: float
    seconds: float


Parts = tuple[Any, NDArray, Any, NDArray]


def folds(name: str, most: int | None = None) -> list[Parts]:
    """Tables and labels to learn from, and to test on: 5 folds, or the first of a large table."""
    table = frame_table(name)
    frame, y = table.X, table.y
    if most is not None and y.size > most:
        labels, counts = np.unique(y, return_counts=True)
        classes = np.where(np.isin(y, labels[counts > 1]), y, labels[counts.argmax()])
        taken, _ = train_test_split(
            np.arange(y.size), train_size=most, random_state=0, stratify=classes
        )
        frame, y = frame.iloc[np.sort(taken)], y[np.sort(taken)]
    found = []
    for learned, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(frame, y):
        X = [frame.iloc[rows].reset_index(drop=True) for rows in (learned, held)]
        found.append((X[0], y[learned], X[1], y[held]))
        if y.size > MOST_FOLDED:
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


def measure_part(part: Parts) -> Outcome:
    """Weka's PART, by its own report; seconds are those that it says it took."""
    X, y, X_test, y_test = part
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "learned.arff"), Path(folder, "held.arff")]
        header = arff_header(X, y, X_test, y_test)
        for file, (table, labels) in zip(files, ((X, y), (X_test, y_test)), strict=True):
            file.write_text(header + arff_rows(table, labels), "utf-8")
        # trees that PART makes rules of are as deep as columns allow
        command = ["java", "-Xss64m", "-cp", os.environ["WEKA"], "weka.classifiers.rules.PART"]
        command += ["-t", str(files[0]), "-T", str(files[1])]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    size = re.search(r"Number of Rules\s*:\s*(\d+)", report)
    seconds = re.search(r"Time taken to build model: ([\d.]+)", report)
    right = re.findall(r"Correctly Classified Instances\s+(\d+)", report)
    if size is None or seconds is None:
        raise ValueError(f"PART reports no rules: {report}")
    conditions = len(re.findall(r" AND$", report, re.M)) + int(size[1])
    return Outcome(int(size[1]), conditions, int(right[-1]) / y_test.size, float(seconds[1]))


def arff_header(*tables: Any) -> str:
    """Columns, with the categories of all tables, and classes."""
    frames, labels = tables[::2], np.unique(np.concatenate(tables[1::2]))
    lines = ["@relation t"]
    for j, name in enumerate(frames[0]):
        words = {str(v) for frame in frames for v in frame[name].dropna()}
        kind = "numeric" if frames[0][name].dtype.kind in "fiu" else quoted(sorted(words))
        lines.append(f"@attribute a{j} {kind}")
    return "\n".join([*lines, f"@attribute class {quoted(map(str, labels.tolist()))}", "@data", ""])


def quoted(words: Any) -> str:
    """A set of categories."""
    return "{" + ",".join(json.dumps(word) for word in words) + "}"


def arff_rows(frame: Any, labels: NDArray) -> str:
    """The rows, with question marks where a value is missing."""
    columns = []
    for name in frame:
        is_number = frame[name].dtype.kind in "fiu"
        write = repr if is_number else lambda v: json.dumps(str(v))
        values = zip(frame[name].tolist(), frame[name].isna().tolist(), strict=True)
        columns.append(["?" if missing else write(value) for value, missing in values])
    columns.append([json.dumps(str(label)) for label in labels.tolist()])
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))


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


LEARNERS = {
    "c50py": measure_c50py,
    "PART": measure_part,
    "RIPPER": measure_ripper,
    "rule list": measure_rule_list,
}


def in_time(peer: str, name: str, rows: int | None, limit: float) -> Outcome | str:
    """What a peer makes of a table in a process of its own, or why there is nothing."""
    command = [sys.executable, "-m", "benchmarks.rules", name, "--only", peer]
    command += [] if rows is None else ["--rows", str(rows)]
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


def lines(names: list[str], peers: list[str], rows: int | None, limit: float) -> Iterator[str]:
    """The table as Markdown, line by line."""
    head = "| table | rows | leaves | pruned | rules | conditions | accuracy, unpruned | pruned "
    head += "| rules | seconds, unpruned | pruned | rules of the unpruned tree |"
    head += "".join(f" {p}, rules | accuracy | seconds |" for p in peers)
    yield head
    yield "|" + "---|" * (head.count("|") - 1)
    for name in names:
        parts = folds(name, rows)
        measured = [measure(part) for part in parts]
        found = {learner: mean([one[learner] for one in measured]) for learner in measured[0]}
        whole, pruned, rules = found["unpruned"], found["pruned"], found["rules"]
        row = [name, f"{parts[0][1].size + parts[0][3].size:,}", f"{whole.size:,.0f}"]
        row += [f"{pruned.size:,.0f}", f"{rules.size:,.0f}", f"{rules.conditions:,.0f}"]
        row += [f"{one.accuracy:.3f}" for one in found.values()]
        row += [f"{one.seconds:.3g}" for one in found.values()]
        for peer in peers:
            row += cells(in_time(peer, name, rows, limit))
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
    parser.add_argument("--rows", type=int, help="most rows of a table")
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--only", choices=list(PEERS), help="one peer, in this process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only:
        learn = LEARNERS[options.only]
        print(json.dumps(mean([learn(part) for part in folds(options.tables[0], options.rows)])))
        return
    print(versions(options.peers), flush=True)
    for line in lines(options.tables or real_names(), options.peers, options.rows, options.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
