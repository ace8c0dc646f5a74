"""Comments that silence findings, and what is wrong with comments that do not."""

from __future__ import annotations

import builtins

import pytest

from jobspec import CompileError, Registry, check, compile
from jobspec.diagnostics import RULES
from jobspec.ignores import can_be_ignored

KEY = "event.data.a + event.data.b"


def spec(debounce, above="", after=""):
    return (
        "jobs:\n  - id: a\n    triggers: [{event: a}]\n    debounce:\n      period: 2m\n"
        f"{above}      key: {debounce}{after}\n"
    )


def codes(text):
    return [found.code for found in check(text)]


def test_the_finding_is_there_without_a_comment():
    assert codes(spec(KEY)) == ["JS430"]


@pytest.mark.parametrize(
    "text",
    [
        spec(KEY, after=" # jobspec: ignore[JS430] owners have no digits"),
        spec(KEY, after="   ## jobspec:ignore[ JS430 ]: owners have no digits"),
        spec(KEY, above="      # jobspec: ignore[JS430] owners have no digits\n"),
        spec(KEY, above="# jobspec: ignore[JS430] owners have no digits\n"),
        spec(KEY, above="      # jobspec: ignore[JS430] a reason\n      # another note\n\n"),
        spec(f"'{KEY}'", after=" # jobspec: ignore[JS430] owners have no digits"),
    ],
)
def test_a_comment_on_the_line_or_alone_above_it_silences(text):
    assert codes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        spec(">-\n        event.data.a\n        + event.data.b", above="      # IGNORE\n"),
        spec("|- # IGNORE\n        event.data.a\n        + event.data.b"),
        spec("event.data.a\n        + event.data.b", above="      # IGNORE\n"),
        spec('"event.data.a\n        + event.data.b"', after=" # IGNORE"),
    ],
)
def test_a_value_over_several_lines_counts_as_one(text):
    assert codes(text.replace("IGNORE", "jobspec: ignore[JS430] a reason")) == []


def test_one_comment_silences_several_codes():
    key = r"event.data.a + event.data.b + '\n'"
    assert codes(spec(key)) == ["JS430", "JS433"]
    assert codes(spec(key, after=" # jobspec: ignore[JS433, JS430] both are meant")) == []


def test_two_comments_above_a_line_are_both_about_it():
    key = r"event.data.a + event.data.b + '\n'"
    above = "      # jobspec: ignore[JS430] one\n      # jobspec: ignore[JS433] other\n"
    assert codes(spec(key, above=above)) == []


def test_an_error_of_meaning_can_be_silenced_and_then_compiles():
    key = "event.data.a + '/' + event.data.a.b"
    assert codes(spec(key)) == ["JS435"]
    assert "a" in compile(spec(key, after=" # jobspec: ignore[JS435] both are wanted"))


@pytest.mark.parametrize(
    "text",
    [
        spec(KEY, above="      # jobspec: ignore[JS430] a reason\n      \n      period_: 2m\n"),
        spec(KEY) + "# jobspec: ignore[JS430] a reason\n",
        spec(KEY).replace("jobs:", "jobs: # jobspec: ignore[JS430] a reason"),
    ],
)
def test_a_comment_elsewhere_silences_nothing_and_is_told_of(text):
    assert {"JS430", "JS442"} <= set(codes(text))


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("jobspec: ignore[JS430]", ["JS440"]),
        ("jobspec: ignore[JS430]  -", ["JS440"]),
        ("jobspec: ignore[JS430, JS999] reason", ["JS441"]),
        ("jobspec: ignore[js430] reason", ["JS430", "JS441"]),
        ("jobspec: ignore[JS430, JS433] reason", ["JS442"]),
        ("jobspec: ignore", ["JS430", "JS443"]),
        ("jobspec: ignore[] reason", ["JS430", "JS443"]),
        ("jobspec: ignore JS430 reason", ["JS430", "JS443"]),
        ("jobspec: disable[JS430] reason", ["JS430", "JS443"]),
        ("jobspec: ignore[JS430, JS111] reason", ["JS444"]),
        ("a note on jobspec: nothing to see", ["JS430"]),
    ],
)
def test_what_is_wrong_with_a_comment_is_told(comment, expected):
    assert codes(spec(KEY, after=f" # {comment}")) == expected


def test_a_text_that_looks_like_a_comment_is_none():
    assert codes(spec("\"event.data.a + ' # jobspec: ignore[JS999]'\"")) == []


def test_syntax_and_shape_can_not_be_silenced():
    text = spec("event.data.a +", after=" # jobspec: ignore[JS106] later")
    assert codes(text) == ["JS106", "JS444"]


def test_only_what_leaves_a_job_to_go_on_with_can_be_silenced():
    silenced = {code for code in RULES if can_be_ignored(code)}
    assert {"JS207", "JS407", "JS430"} <= silenced
    assert all(code[2] in "24" for code in silenced)
    assert not {"JS440", "JS441", "JS442", "JS443", "JS444"} & silenced


MODELED = spec(KEY, after=" # jobspec: ignore[JS207, JS430] numbers are small").replace(
    "jobs:", "events: {a: {schema: 'somewhere:Model'}}\njobs:"
)


def test_comments_about_types_are_not_judged_while_a_model_is_not_imported():
    assert codes(MODELED) == []
    assert codes(MODELED.replace("JS207", "JS433")) == ["JS442"]


@pytest.fixture
def declared(tmp_path):
    """Return a function that runs a Python file and returns what is found in its registry."""

    def findings(text):
        file = tmp_path / "declared.py"
        file.write_text(f"import jobspec\n\nregistry = jobspec.Registry()\n\n\n{text}", "utf-8")
        names = {}
        exec(builtins.compile(file.read_text("utf-8"), str(file), "exec"), names)  # noqa: S102
        return check(names["registry"])

    return findings


BELOW = "\ndef index(context): ...\n"


@pytest.mark.parametrize(
    "decorator",
    [
        '@registry.job(id="a", triggers=[])  # jobspec: ignore[JS408] a reason',
        '@registry.job(\n    id="a",\n    triggers=[],  # jobspec: ignore[JS408] a reason\n)',
        '@registry.job(\n    id="a",\n    # jobspec: ignore[JS408] a reason\n    triggers=[],\n)',
        '# jobspec: ignore[JS408] a reason\n# a note\n@registry.job(id="a", triggers=[])',
    ],
)
def test_a_comment_in_a_declaration_or_alone_above_it_silences(declared, decorator):
    assert declared(decorator + BELOW) == ()


@pytest.mark.parametrize(
    "text",
    [
        f'@registry.job(id="a", triggers=[]){BELOW}    # jobspec: ignore[JS408] a reason\n',
        f'# jobspec: ignore[JS408] a reason\n\n@registry.job(id="a", triggers=[]){BELOW}',
        f'@registry.job(id="a", name="# jobspec: ignore[JS408] a text", triggers=[]){BELOW}',
    ],
)
def test_a_comment_elsewhere_in_a_python_file_silences_nothing(declared, text):
    assert [found.code for found in declared(text)] == ["JS408"]


def test_what_is_wrong_with_a_comment_in_python_is_found_at_its_place(declared):
    comment = "# jobspec: ignore[JS408]"
    declaration = f'@registry.job(\n    id="ä",  {comment}\n    triggers=["a"],\n)'
    with pytest.raises(CompileError) as raised:
        declared(declaration + BELOW)
    found = [(one.code, one.source.place(one.span)) for one in raised.value.diagnostics]
    assert [(code, place.start) for code, place in found] == [
        ("JS440", (7, 14)),
        ("JS442", (7, 14 + comment.index("JS408"))),
    ]
    assert all(place.file.endswith("declared.py") for _, place in found)


def test_a_declaration_whose_source_is_not_there_has_no_comments():
    names = {"registry": Registry()}
    exec('@registry.job(id="a", triggers=[])  # jobspec: ignore[JS408] why' + BELOW, names)  # noqa: S102
    assert [found.code for found in check(names["registry"])] == ["JS408"]
