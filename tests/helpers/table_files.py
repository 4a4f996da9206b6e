"""Tables written to files of every format that is read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def write_table(table: pa.Table, path: Path, rows: int | None = None) -> Path:
    """The file `path` of a table, as its ending says, in groups of so many rows."""
    kind = path.suffixes[0].lower()
    if kind == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=rows)
    elif kind in (".feather", ".arrow"):
        pyarrow.feather.write_feather(table, path, chunksize=rows)
    elif kind == ".csv":
        compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
        with pa.output_stream(path, compression=compression) as file:
            pyarrow.csv.write_csv(table, file)
    else:
        is_number = pa.types.is_integer
        head = [f"@attribute {f.name} {'numeric' if is_number(f.type) else 'string'}"
                for f in table.schema]  # fmt: skip
        rows_of = [row.values() for row in table.to_pylist()]
        lines = [",".join("?" if x is None else str(x) for x in row) for row in rows_of]
        path.write_text("\n".join(["@relation r", *head, "@data", *lines, ""]), "utf-8")
    return path
