"""The page of each code shows what it says: a key with that fault, and one without any."""

from __future__ import annotations

import re
from importlib import resources

import pytest
import yaml

from jobspec.diagnostics import RULES
from jobspec.keys import KeyTemplate, KeyTemplateError

CODES = sorted(code for code in RULES if "JS101" <= code <= "JS139")
EXAMPLE = re.compile(r"## (Example|Use instead)\n\n```yaml\n(.*?)```", re.DOTALL)


def page(code):
    return (resources.files("jobspec") / "explanations" / f"{code}.md").read_text(encoding="utf-8")


def key_in(example):
    spec = yaml.safe_load(example)
    while isinstance(spec, dict):
        spec = spec.get("key", next(iter(spec.values())))
    return spec


@pytest.mark.parametrize("code", CODES)
def test_the_bad_example_has_this_fault_and_the_other_one_none(code):
    examples = dict(EXAMPLE.findall(page(code)))
    with pytest.raises(KeyTemplateError) as refused:
        KeyTemplate.parse(key_in(examples["Example"]))
    assert code in {found.code for found in refused.value.diagnostics}
    assert KeyTemplate.parse(key_in(examples["Use instead"]))


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_titled_with_code_and_name(code):
    assert page(code).startswith(f"# {code}: {RULES[code].name}\n")
