"""Comments are found where YAML has them, and nowhere else."""

from __future__ import annotations

import pytest

from jobspec.load import comments
from jobspec.source import Source


def found(text, name="jobs.yaml"):
    return [(comment.line, comment.text) for comment in comments(Source(name, text))]


TEXT = """\
# jobspec: one
a: 1 # jobspec: two
b: "x # no" # jobspec: three
c: 'x
  # no'
d: | # jobspec: four
  text # no
  # no
# jobspec: five
e: x#no
f: [1, # jobspec: six # the same
  2] # seven
g: >-
  # no

  # no
h: &x # jobspec: eight
  '# no'
i: # nine
"""


def test_comments_are_what_stands_outside_of_every_text():
    assert found(TEXT) == [
        (1, "# jobspec: one"),
        (2, "# jobspec: two"),
        (3, "# jobspec: three"),
        (6, "# jobspec: four"),
        (9, "# jobspec: five"),
        (11, "# jobspec: six # the same"),
        (12, "# seven"),
        (17, "# jobspec: eight"),
        (19, "# nine"),
    ]


def test_places_and_lines_hold_with_carriage_returns():
    text = TEXT.replace("\n", "\r\n")
    assert found(text) == found(TEXT)
    for comment in comments(Source("jobs.yaml", text)):
        assert text[slice(*comment.span)] == comment.text


def test_a_text_that_never_says_jobspec_has_none():
    assert found("a: 1 # why\n") == []


def test_json_has_none():
    assert found('["a # jobspec: b"]', "jobs.json") == []


@pytest.mark.parametrize("fault", ["a: b: c\n", "a: [\n", "\tx\n"])
def test_a_fault_further_down_hides_no_comment(fault):
    assert found("x: '# jobspec: no' # jobspec: yes\n" + fault) == [(1, "# jobspec: yes")]


def test_a_character_that_no_file_may_hold_hides_no_comment():
    assert found("x: 1 # jobspec: yes\n\x1f\n") == [(1, "# jobspec: yes")]
