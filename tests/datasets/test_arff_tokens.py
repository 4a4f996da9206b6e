"""ARFF as Weka's tokenizer reads it: java.io.StreamTokenizer as weka.core.converters.ArffLoader
sets it up. What is right was written by hand after its rules.
"""

from __future__ import annotations

import pytest

from gputree.datasets import read_table

HEAD = "@relation r\n@attribute a numeric\n@attribute c {x,y}\n@data\n"
PLAIN = {"a": [1, 2], "c": ["x", "y"]}

WHOLE = {
    "comment behind braces": (
        "@relation r\n@attribute a numeric\n@attribute label {-1,1} %{<=50K, >50K}\n@data\n"
        "1,-1\n2,1\n",
        {"a": [1, 2], "label": ["-1", "1"]},
    ),
    "comment behind a type": (HEAD.replace("numeric", "numeric % years") + "1,x\n2,y\n", PLAIN),
    "comment within a row": (HEAD + "1,x% first\n2%,x\n,y\n", None),
    "comment behind a row": (HEAD + "1,x % first\n2,y%, or so\n", PLAIN),
    "no comment in quotes": (
        HEAD.replace("{x,y}", "{'5%','x%y'}") + "1,'5%'\n2,\"x%y\"\n",
        {"a": [1, 2], "c": ["5%", "x%y"]},
    ),
    "a brace ends a word": (HEAD.replace("c {", "c{") + "1,x\n2,y\n", PLAIN),
    "a quote ends a word": (
        HEAD.replace("{x,y}", "{x'y z'}") + "1,x\n2,'y z'\n",
        {"a": [1, 2], "c": ["x", "y z"]},
    ),
    "no-break space": (
        HEAD.replace("{x,y}", "{new\u00a0york,y}") + "1,new\u00a0york\n2,y\n",
        {"a": [1, 2], "c": ["new\u00a0york", "y"]},
    ),
    "ideographic space, beside quotes": (
        HEAD.replace("{x,y}", "{a\u3000b,'y'}") + "1,a\u3000b\n'2',y\n",
        {"a": [1, 2], "c": ["a\u3000b", "y"]},
    ),
    "control characters part words": (HEAD + "1\x0b\x01x\n\x1f2\t,,\ty\x00\n", PLAIN),
    "escapes": (
        HEAD.replace("{x,y}", r"{'a\tb',atb,'\101\47','\8'}") + "1,'a\\tb'\n2,'A\\''\n",
        {"a": [1, 2], "c": ["a\tb", "A'"]},
    ),
    "a quote that does not end": (HEAD + "1,'x\n2,y\n", PLAIN),
    "lines that end in CR": ((HEAD + "1,x\n2,y\n").replace("\n", "\r"), PLAIN),
    "lines that end in CR LF": ((HEAD + "1,x\n2,y\n").replace("\n", "\r\n"), PLAIN),
    "a question mark in quotes": (
        HEAD.replace("{x,y}", "{'?',y}") + "1,'?'\n?,?\n",
        {"a": [1, None], "c": ["?", None]},
    ),
    "what is behind a numeric type": (
        HEAD.replace("numeric", "real [0.0, 10.0]") + "1,x\n2,y\n",
        PLAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_words(tmp_path, name):
    text, expected = WHOLE[name]
    path = tmp_path / "t.arff"
    path.write_bytes(text.encode())
    if expected is None:  # a row that ends where a comment begins has too few cells
        with pytest.raises(ValueError, match=r"line 6: expected 2 cells, got 1"):
            read_table(path)
        return
    assert read_table(path).columns.to_pydict() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "1,x,{5}\n", r"line 5: \{5\} is the weight of the row, which is not read"),
        (HEAD + "1,{x\n", "line 5: a brace in a word must be in quotes"),
        (HEAD + "{0 1}\n", "line 5: sparse rows are not read"),
        (HEAD.replace("@data", "@inputs a\n@data") + "1,x\n", "line 4: .*It is of KEEL's files"),
        (HEAD.replace("{x,y}", "{x,y} z") + "1,x\n", "line 3: this declares no column"),
        (HEAD.replace("{x,y}", "{x,y") + "1,x\n", "line 3: this declares no column"),
        (HEAD + "1_000,x\n", "line 5: column 'a' holds '1_000', which is not a number"),
        (HEAD + "\uff11,x\n", "line 5: column 'a' holds '\uff11', which is not a number"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    path = tmp_path / "t.arff"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(path)
