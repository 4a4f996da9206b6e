"""Make ``labels.otf``: of a Chinese font, the letters that the tutorial's pictures may show.

    python docs/zh/labels.py NotoSansCJKsc-Regular.otf

Noto Sans CJK is under the SIL Open Font License 1.1, whose text is in OFL.txt. The build of
the pages takes letters from it, so that pictures are the same everywhere; a letter that it lacks is
an error there.
"""

import sys
from pathlib import Path

from fontTools import subset

HERE = Path(__file__).parent
LATIN = range(0x20, 0x7F)
MINUS = 0x2212


def main(font: str) -> None:
    written = "".join(path.read_text("utf-8") for path in sorted(HERE.glob("tutorial/*.py")))
    letters = [*LATIN, MINUS, *map(ord, sorted(set(written)))]
    options = subset.Options(name_IDs=["*"], layout_features=[], hinting=False, desubroutinize=True)
    made = subset.load_font(font, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters)
    subsetter.subset(made)
    subset.save_font(made, str(HERE / "labels.otf"), options)


if __name__ == "__main__":
    main(sys.argv[1])
