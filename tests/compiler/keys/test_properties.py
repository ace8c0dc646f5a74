"""What holds for every key template, every event, and every text."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobspec.keys import KeyTemplate, KeyTemplateError
from reference.model import answer
from strategies import almost_templates, broken_templates, events_for, templates

fewer = settings(max_examples=settings.default.max_examples // 5)


@st.composite
def templates_and_events(draw):
    text = draw(templates())
    return text, draw(events_for(KeyTemplate.parse(text).paths))


@given(templates_and_events())
def test_a_key_is_what_the_naive_model_says(template_and_event):
    text, event = template_and_event
    template = KeyTemplate.parse(text)
    assert template.resolve(event) == answer(text, event)
    assert answer(str(template), event) == answer(text, event)


@fewer
@given(templates())
def test_a_template_printed_and_parsed_is_the_same_template(text):
    template = KeyTemplate.parse(text)
    printed = KeyTemplate.parse(str(template))
    assert printed == template
    assert hash(printed) == hash(template)
    assert str(printed) == str(template)


@fewer
@given(st.one_of(almost_templates, broken_templates(), st.text()))
@example("")
@example("''''")
@example("'-'.b")
def test_any_text_is_a_template_or_refused_with_a_span_inside_it(text):
    try:
        template = KeyTemplate.parse(text)
    except KeyTemplateError as refused:
        assert_well_told(text, refused.diagnostics)
    else:
        assert [text[slice(*term.span)] for term in template.terms]


def assert_well_told(text, diagnostics):
    places = [found.span for found in diagnostics]
    assert places
    assert places == sorted(places)
    assert all(0 <= start <= end <= len(text) for start, end in places)
    for found in diagnostics:
        assert found.message != "this is not a key"  # every construct has a name
        assert found.message.isprintable()
        assert found.help is not None
        assert found.help.isprintable()
