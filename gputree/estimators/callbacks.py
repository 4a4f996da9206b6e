"""Callbacks of scikit-learn 1.9 and newer: progress, scores and early stops of a fit by its parts.

A fit is a task; the trees of a forest and the trials of boosting are its subtasks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if

# Takes a function that returns the attributes fitted so far; True if a callback ends the fit.
EndOfPart = Callable[[Callable[[], dict[str, Any]]], bool]

# The whole fit's context, and the callbacks that are to be torn down: names of scikit-learn's.
_DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def _supported(estimator: Any) -> bool:
    """Return whether the scikit-learn that is installed has callbacks."""
    return find_spec("sklearn.callback") is not None


class CallbackSupport:
    """Mixin of estimators whose fit, and each part of it, calls callbacks at its start and end."""

    _part: ClassVar[str] = ""  # name of a part; empty where there is none
    _fit_arguments: dict[str, Any]

    @available_if(_supported)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of the fits that follow, in place of earlier ones.

        They are called when a fit and its parts, the trees of a forest or the trials of boosting,
        begin and end. A part that ends has the estimator of the parts so far, ready to predict;
        where a callback returns True at the end of one, it is the last. Trees that are grown at
        once begin together. Needs scikit-learn 1.9 or newer.

        Parameters
        ----------
        *callbacks : objects of `sklearn.callback`, or of its protocol `FitCallback`
            Such as ``ProgressBar()`` and ``ScoringMonitor(scoring="accuracy")``.

        Returns
        -------
        self
        """
        from sklearn.callback import CallbackSupportMixin

        returned: Self = CallbackSupportMixin.set_callbacks(self, *callbacks)
        return returned

    def _most_parts(self) -> int:
        """Maximum number of parts of a fit."""
        return 0

    @property
    def _has_callbacks(self) -> bool:
        """True if callbacks are set, or those of an estimator that fits this one may be."""
        return hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")

    @contextmanager
    def _called_back(self, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
        """Call callbacks at the start and the end of a fit."""
        if not self._has_callbacks:
            yield
            return
        from sklearn.callback import CallbackSupportMixin

        context = CallbackSupportMixin._init_callback_context(self, max_subtasks=self._most_parts())
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        arguments = {"X": X, "y": y, "metadata": metadata}
        self._fit_arguments = arguments
        context.call_on_fit_task_begin(estimator=self, **arguments)
        try:
            yield
        finally:
            self.__dict__.pop("_fit_arguments", None)
        context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **arguments)

    def _begin_part(self) -> EndOfPart:
        """Call callbacks at the start of a part; return what to call at its end."""
        root: Any = getattr(self, "_callback_fit_ctx", None)
        if root is None:
            return lambda fitted: False
        context = root.subcontext(task_name=self._part)
        arguments = self._fit_arguments
        context.call_on_fit_task_begin(estimator=self, **arguments)

        def end(fitted: Callable[[], dict[str, Any]]) -> bool:
            stops = context.call_on_fit_task_end(
                estimator=self, reconstruction_attributes=fitted, **arguments
            )
            return bool(stops)

        return end

    def _of_fit(self) -> dict[str, Any]:
        """Attributes that scikit-learn reads when a fit has ended, by an error, too."""
        return {name: vars(self)[name] for name in _DURING_FIT if name in vars(self)}
