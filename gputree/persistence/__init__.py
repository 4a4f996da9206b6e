"""Models in files, without pickle: reading one runs no code. README.md describes the formats.

===============  ================================================================================
`save_load`      the door: `save_model`, `load_model`, the same as JSON for readers in any language
`codecs`         the registry: which codec turns which estimator into `Contents` and back;
                 codecs are `one_tree`, `forests`, `boosting`, `rule_sets`
`header`         parameters, columns and classes, as JSON holds them
`trees`          the codec of a tree, of which each format stores the arrays its way
`model_file`     a header and arrays in a zip archive
`container`      bytes of archives, and values of headers, read within bounds
===============  ================================================================================

A new kind of estimator needs a codec, two functions, and an entry in `codecs.CODECS`.
"""

from gputree.persistence.model_file import (
    FORMAT,
    FORMAT_VERSION,
    Contents,
    read_contents,
    write_contents,
)
from gputree.persistence.save_load import (
    export_json,
    json_schema,
    load_model,
    read_json,
    read_saved,
    save_model,
)
from gputree.persistence.trees import FutureModelError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Contents",
    "FutureModelError",
    "export_json",
    "json_schema",
    "load_model",
    "read_contents",
    "read_json",
    "read_saved",
    "save_model",
    "write_contents",
]
