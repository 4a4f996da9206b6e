"""Trees as an ONNX model: the operator TreeEnsemble of ai.onnx.ml 5, in float64.

A forest is an operator a tree, whose predictions are added one after the other, as the forest adds
them: one operator of several trees adds them in an order that depends on the threads, and takes
three times as long for many rows (onnxruntime 1.32, 100 trees of 25,000 nodes).
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.base.optional import require
from gputree.columns.categories import EXACT_IN_FLOAT64, hold_text
from gputree.errors import InputError
from gputree.export.binary import Binary, as_binary
from gputree.export.model import Model, Models, models_of
from gputree.export.parameters import checked

_OPSETS = {"": 18, "ai.onnx.ml": 5}
_AT_MOST, _MEMBER = 0, 6  # BRANCH_LEQ, BRANCH_MEMBER
_MISSING_WORD = ""  # text has no NaN
_MOST_BYTES = (1 << 31) - (1 << 20)  # of a protobuf, but for the parts that are small


@checked
def to_onnx(
    estimator_or_tree: Any,
    *,
    inputs: Literal["auto", "matrix", "columns"] = "auto",
    missing: Literal["error", "largest"] = "error",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
) -> Any:
    """Convert a fitted tree or forest to an ONNX model.

    Its outputs are ``label`` and ``probabilities`` of shape (n, K) in classification, or
    ``prediction`` of shape (n,), equal to the estimator's to the last bit. Of several targets,
    ``label_0`` and ``probabilities_0`` and so on, or ``prediction`` of shape (n, n_outputs).

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
        Categories of a bare Tree are codes.
    inputs : "auto", "matrix" or "columns", default="auto"
        "matrix": one input ``X`` of float64, shape (n, d), NaN where missing, with codes of
        categories (-1 where unknown; of ordered ones NaN). "columns": an input of shape (n, 1) for
        each column, by its name: float64, or text for categories that are text, where the empty
        string is missing (unless it is a category). "auto": columns where there are categories.
    {missing}
    {labels}

    Returns
    -------
    onnx.ModelProto
        Serve it with onnxruntime; the reference evaluator of the package onnx routes values of sets
        incorrectly.

    Raises
    ------
    ImportError
        onnx (extra export) is not installed.
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The tree sends rows down every branch and `missing` is "error"; a column has both numbers
        and text as categories, or integers beyond 2**53 or the name of an output (`inputs` "matrix"
        takes any); a label is no integer of 64 bits; the model takes more than 2 GiB, the limit of
        protobuf; or a parameter is none of those above.

    Notes
    -----
    A split into several branches becomes a chain of tests for sets of categories.
    """
    helper = require("onnx.helper", "to_onnx")
    onnx = require("onnx", "to_onnx")
    models = models_of(
        estimator_or_tree, feature_names, class_names,
        by_costs=True, of_targets=True, missing=missing, format_name="ONNX",
    )  # fmt: skip
    model = models.first
    if inputs == "auto":
        coded = any(words is not None for words in model.categories)
        inputs = "columns" if coded else "matrix"
    opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
    result = helper.make_model(
        helper.make_graph([], "tree", [], []),
        opset_imports=opsets, ir_version=10, producer_name="gputree",
    )  # fmt: skip
    graph = _Graph(onnx, result.graph, [] if inputs == "matrix" else model.feature_names)
    graph.answer(models, graph.matrix(model) if inputs == "matrix" else graph.columns(model))
    onnx.checker.check_model(result)
    return result


class _Graph:
    """A graph while it is made; `names` are names of its inputs, which no other value may have."""

    def __init__(self, onnx: Any, graph: Any, names: Sequence[str]) -> None:
        self.onnx, self.helper, self.graph = onnx, onnx.helper, graph
        self.names = set(names)
        if "" in names or len(self.names) < len(names):
            raise InputError(
                "ONNX cannot represent this tree: its inputs need different names, none of them "
                "empty. Pass feature_names, or inputs='matrix'."
            )
        self.size = 0  # bytes

    def matrix(self, model: Model) -> str:
        """One input of all columns."""
        shape = ["n", model.tree.n_features]
        double = self.onnx.TensorProto.DOUBLE
        self.graph.input.append(self.helper.make_tensor_value_info("X", double, shape))
        return "X"

    def columns(self, model: Model) -> str:
        """Add one input per column, categories as they are; return the name of their matrix."""
        parts = []
        for f, (name, categories) in enumerate(
            zip(model.feature_names, model.categories, strict=True)
        ):
            is_text = hold_text(categories)
            kinds = self.onnx.TensorProto
            kind = kinds.STRING if is_text else kinds.DOUBLE
            self.graph.input.append(self.helper.make_tensor_value_info(name, kind, ["n", 1]))
            unknown = np.nan if f in model.ordered else -1.0
            if categories is not None:
                name = self._code(name, categories, is_text, unknown)
            parts.append(name)
        return self.add("Concat", parts, "matrix", axis=1)

    def _code(self, name: str, categories: NDArray[Any], is_text: bool, unknown: float) -> str:
        """Codes of a column of categories: `unknown` of others, NaN where missing."""
        words = categories.tolist()
        if is_text and not all(isinstance(word, str) for word in words):
            raise InputError(
                f"ONNX cannot represent this tree: column {name!r} has both numbers and text as "
                "categories; use inputs='matrix'."
            )
        integers = () if is_text else [word for word in words if not isinstance(word, float)]
        if any(abs(word) > EXACT_IN_FLOAT64 for word in integers):
            raise InputError(
                f"ONNX cannot represent this tree: column {name!r} has integers beyond 2**53 as "
                "categories, and its inputs are float64, in which some are the same; use "
                "inputs='matrix', which takes codes."
            )
        codes = list(map(float, range(len(words))))
        nothing = _MISSING_WORD if is_text else float("nan")
        if nothing not in words:
            words, codes = [*words, nothing], [*codes, float("nan")]
        keys = words if is_text else np.array(words, np.float64)
        tensor = self._tensor("", np.array(keys, object if is_text else np.float64))
        return self.add(
            "LabelEncoder",
            [name],
            f"code of {name}",
            domain="ai.onnx.ml",
            keys_tensor=tensor,
            values_tensor=self._tensor("", np.array(codes, np.float64)),
            default_tensor=self._tensor("", np.array([unknown])),
        )

    def answer(self, models: Models, table: str) -> None:
        """Look up each tree's prediction by its leaf; average the predictions of several trees."""
        kinds, classes, several = self.onnx.TensorProto, models.first.classes, len(models) > 1
        flat, total = self._constant("flat", np.array([-1])), ""
        for place, model in enumerate(models):
            binary = as_binary(model)
            leaves = binary.source[binary.is_leaf]
            value = model.tree.predictions[leaves]
            found = self.add(
                "TreeEnsemble", [table], "found", domain="ai.onnx.ml", **self._ensemble(binary)
            )
            found = self.add("Cast", [found], "place", to=kinds.INT64)
            leaf = self.add("Reshape", [found, flat], "leaf")
            value = value[:, 0] if model.tree.n_classes == 1 and classes is None else value
            mean = "Gather", [self._constant("values", value), leaf]
            if several:
                mean_of_tree = self.add(*mean, "value")
                total = self.add("Add", [total, mean_of_tree], "total") if place else mean_of_tree
            if self.size > _MOST_BYTES:
                raise InputError(
                    f"ONNX cannot represent this model: its trees up to number {place + 1} of "
                    f"{len(models)} take {self.size:,} bytes, and protobuf allows 2 GiB. Use "
                    "to_treelite or export_lightgbm, or grow fewer or smaller trees "
                    "(n_estimators, max_leaf_nodes)."
                )
        if several:
            mean = "Div", [total, self._constant("trees", np.array(float(len(models))))]
        if targets := models.first.target_classes:
            self._answer_targets(self.add(*mean, "joined"), targets)
            return
        if classes is None:
            of_one = models.first.tree.n_outputs == 1
            shape = ["n"] if of_one else ["n", models.first.tree.n_outputs]
            self._promise("prediction", kinds.DOUBLE, shape)
            self.add(*mean, "prediction")
            return
        words = _labels(classes)
        labels = self._constant("labels", words if several else words[model.labels[leaves]])
        self._promise("label", self.graph.initializer[-1].data_type, ["n"])
        self._promise("probabilities", kinds.DOUBLE, ["n", len(classes)])
        shares = self.add(*mean, "probabilities")
        best = self.add("ArgMax", [shares], "best", axis=1, keepdims=0) if several else leaf
        self.add("Gather", [labels, best], "label")

    def _answer_targets(self, joined: str, targets: Sequence[NDArray[Any]]) -> None:
        """Promise labels and probabilities of each target, from its columns of the `joined`."""
        end = 0
        for j, classes in enumerate(targets):
            begin, end = end, end + len(classes)
            labels = self._constant("labels", _labels(classes))
            columns = self._constant("columns", np.arange(begin, end))
            self._promise(f"label_{j}", self.graph.initializer[-2].data_type, ["n"])
            self._promise(f"probabilities_{j}", self.onnx.TensorProto.DOUBLE, ["n", len(classes)])
            shares = self.add("Gather", [joined, columns], f"probabilities_{j}", axis=1)
            best = self.add("ArgMax", [shares], "best", axis=1, keepdims=0)
            self.add("Gather", [labels, best], f"label_{j}")

    def _ensemble(self, binary: Binary) -> dict[str, Any]:
        """Attributes of the tree whose leaves return their places."""
        inner = np.flatnonzero(~binary.is_leaf)
        leaf = binary.is_leaf
        place = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1
        left, right = binary.left[inner], binary.right[inner]
        if inner.size == 0:  # a leaf alone is a test with one leaf on both sides
            inner, left, right = np.zeros((3, 1), np.int64)
        is_set = np.isnan(binary.threshold[inner]) & ~leaf[inner]
        ends = [np.append(binary.codes[node], np.nan) for node in inner[is_set].tolist()]
        attributes = {
            "n_targets": 1,
            "tree_roots": [0],
            "nodes_featureids": np.maximum(binary.feature[inner], 0).tolist(),
            "nodes_modes": self._tensor("", np.where(is_set, _MEMBER, _AT_MOST).astype(np.uint8)),
            "nodes_splits": self._tensor("", np.nan_to_num(binary.threshold[inner])),
            "nodes_missing_value_tracks_true": binary.missing_left[inner].astype(int).tolist(),
            "nodes_trueleafs": leaf[left].astype(int).tolist(),
            "nodes_truenodeids": place[left].tolist(),
            "nodes_falseleafs": leaf[right].astype(int).tolist(),
            "nodes_falsenodeids": place[right].tolist(),
            "leaf_targetids": [0] * int(leaf.sum()),
            "leaf_weights": self._tensor("", np.arange(leaf.sum(), dtype=np.float64)),
        }
        if ends:
            attributes["membership_values"] = self._tensor("", np.concatenate(ends))
        return attributes

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node of one output and return its name: another one where an input has it."""
        name = self._free(output)
        node = self.helper.make_node(operator, inputs, [name], **attributes)
        self.graph.node.append(node)
        self.size += node.ByteSize()
        return name

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        name = self._free(name)
        tensor = self._tensor(name, values)
        self.graph.initializer.append(tensor)
        self.size += tensor.ByteSize()
        return name

    def _free(self, name: str) -> str:
        free, more = name, 0
        while free in self.names:
            more += 1
            free = f"{name}_{more}"
        self.names.add(free)
        return free

    def _tensor(self, name: str, values: NDArray[Any]) -> Any:
        return self.onnx.numpy_helper.from_array(values, name)

    def _promise(self, name: str, kind: int, shape: list[Any]) -> None:
        """Declare an output: the value of this name, which is still to be added."""
        if name in self.names:
            raise InputError(
                f"ONNX cannot represent this tree: {name!r} is a column and an output. Pass "
                "feature_names with another name for it, or inputs='matrix'."
            )
        self.graph.output.append(self.helper.make_tensor_value_info(name, kind, shape))


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels as ONNX holds them: integers, float64 or text."""
    if classes.dtype.kind in "biu":
        if int(classes.max()) > np.iinfo(np.int64).max:
            raise InputError(
                f"ONNX cannot represent the label {int(classes.max())}: its integers have 64 bits "
                "with the sign. Pass class_names of text."
            )
        return classes.astype(np.int64)
    return classes.astype(np.float64) if classes.dtype.kind == "f" else classes.astype(object)
