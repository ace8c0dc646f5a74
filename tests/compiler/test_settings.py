"""`[tool.jobspec]` in pyproject.toml, and the options of a check that take its place."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from jobspec import CompileError, check, compile, project_paths
from jobspec.cli import main
from jobspec.settings import find_settings

WARNED = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    debounce: {key: event.data.a + event.data.b, period: 2m}
    cancelOn: [{event: stop}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose settings are written by a call; the working directory is below it."""
    (tmp_path / "below").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.yaml").write_text(WARNED, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "below")

    def write(settings):
        text = f'[project]\nname = "x"\n\n[tool.jobspec]\n{settings}\n'
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")

    return write


def codes(*arguments):
    result = CliRunner().invoke(main, ["check", "--format", "concise", *arguments])
    return [line.split("[")[1].split("]")[0] for line in result.stdout.splitlines() if "[" in line]


def said(settings_of):
    """What is wrong with settings: pairs of the text it is at and the message."""
    return [
        (found.source.text[slice(*found.span)], found.message) for found in settings_of.findings
    ]


def test_without_settings_every_finding_is_shown(project):
    assert codes("../jobs") == ["JS430", "JS407"]


def test_settings_are_found_from_the_working_directory_upwards(project):
    project('ignore = ["JS407"]')
    assert codes("../jobs") == ["JS430"]


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ('select = ["JS407"]', ["JS407"]),
        ('select = ["cancels-every-run"]', ["JS407"]),
        ('select = ["JS43"]', ["JS430"]),
        ('select = ["JS4"]\nignore = ["JS43"]', ["JS407"]),
        ('ignore = ["JS4"]', []),
    ],
)
def test_findings_are_selected_and_ignored_by_code_name_and_beginning(project, settings, shown):
    project(settings)
    assert codes("../jobs") == shown


def test_options_take_the_place_of_settings(project):
    project('ignore = ["JS407"]')
    assert codes("../jobs", "--ignore", "JS430") == ["JS407"]
    assert codes("../jobs", "--ignore", "JS430,JS407") == []
    assert codes("../jobs", "--ignore", "JS430", "--ignore", "JS407") == []
    assert codes("../jobs", "--select", "JS407", "--ignore", "JS430") == ["JS407"]


def test_an_option_with_a_code_that_does_not_exist_is_misuse(project):
    result = CliRunner().invoke(main, ["check", "../jobs", "--ignore", "JS999"])
    assert (result.exit_code, "there is no code `JS999`" in result.stderr) == (2, True)


def test_what_makes_a_spec_unreadable_is_always_shown(project):
    project('select = ["JS407"]')
    text = WARNED.replace("debounce", "debonce")
    assert [found.code for found in check(text)] == ["JS301", "JS407"]


def test_a_check_of_nothing_named_takes_the_paths_of_the_settings(project):
    project('paths = ["jobs"]')
    assert codes() == ["JS430", "JS407"]


def test_programs_ask_for_the_paths_of_the_project(project):
    assert project_paths() == ()
    project('paths = ["jobs", "myapp.jobs"]')
    assert project_paths() == ("../jobs", "myapp.jobs")


def test_a_program_compiles_what_the_project_names_where_it_names_nothing_itself(project):
    project('paths = ["jobs"]\nselect = ["JS407"]')
    assert list(compile()) == ["email.send"]
    assert [found.code for found in check()] == ["JS407"]


def test_where_nothing_names_specs_a_compilation_says_what_to_do(project):
    with pytest.raises(CompileError) as raised:
        compile()
    (found,) = raised.value.diagnostics
    assert (found.code, "set `paths` under [tool.jobspec]" in found.help) == ("JS313", True)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("jobs/b.yaml", "`../jobs/b.yaml`: there is no such file"),
        ("below", "`.`: no spec file is here"),
        ("myapp.jobs", "`myapp.jobs`: there is no module `myapp`"),
    ],
)
def test_a_path_of_the_settings_that_leads_nowhere_is_told_at_its_place(project, path, message):
    project(f"paths = [\n  'jobs',\n  \"{path}\",\n]")
    for findings in (check(), check(project_paths())):
        (found,) = (one for one in findings if one.source.name == "../pyproject.toml")
        line = found.source.text.count("\n", 0, found.span.start) + 1
        assert (line, found.source.text[slice(*found.span)]) == (7, f'"{path}"')
        assert found.message == message


def test_a_path_that_a_caller_names_is_told_by_its_name(project):
    project('paths = ["jobs", "jobs/b.yaml"]')
    (found,) = check("../jobs/b.yaml")
    assert found.source.name == "../jobs/b.yaml"


def test_paths_that_can_not_be_read_are_not_taken_for_none(project):
    project('paths = "jobs"')
    with pytest.raises(CompileError, match="`paths` must be a list of texts"):
        project_paths()


def test_a_check_of_nothing_named_and_nothing_set_is_misuse(project):
    result = CliRunner().invoke(main, ["check"])
    assert (result.exit_code, "there is nothing to read" in result.stderr) == (2, True)


def test_on_missing_counts_for_jobs_that_do_not_say_it(project):
    project('on_missing = "reject"')
    own = WARNED.replace("    triggers", "    on_missing: skip\n    triggers")
    assert compile(WARNED)["email.send"].on_missing == "reject"
    assert compile(own)["email.send"].on_missing == "skip"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('slect = ["JS4"]', ("slect", "`slect` is not a setting")),
        ('select = "JS4"', ("select", "`select` must be a list of texts")),
        ("ignore = [407]", ("ignore", "`ignore` must be a list of texts")),
        ('ignore = ["JS999"]', ("ignore", "there is no code `JS999`")),
        (
            'ignore = ["JS301"]',
            ("ignore", "`JS301` is always shown: only `JS2` and `JS4` are selected or ignored"),
        ),
        ('on_missing = "fail"', ("on_missing", "`on_missing` can't be `fail`")),
        ('paths = ["jobs", 5]', ("paths", "`paths` must be a list of texts")),
        (
            f"paths = [{'9' * 5_000}]",
            ("[tool.jobspec]", "this file has a number of more digits than can be read"),
        ),
        (
            "paths = ",
            ("[tool.jobspec]", "this file is not TOML: invalid value (at line 5, column 9)"),
        ),
    ],
)
def test_a_setting_that_is_wrong_is_a_finding_at_its_place(project, settings, expected):
    project(settings)
    assert [(place, message.split("; ")[0]) for place, message in said(find_settings())] == [
        expected
    ]


def test_a_wrong_setting_fails_a_check_and_a_compilation(project):
    project('slect = ["JS4"]')
    (found,) = (one for one in check(WARNED) if one.code == "JS330")
    assert (found.source.name, found.help) == ("../pyproject.toml", "did you mean `select`?")
    with pytest.raises(CompileError):
        compile(WARNED)


def test_a_project_without_settings_is_not_parsed(project, tmp_path):
    (tmp_path / "pyproject.toml").write_text("this is not TOML", encoding="utf-8")
    assert find_settings().findings == ()


@pytest.mark.parametrize(
    "text", ["[[tool.jobspec]]\npaths = []", "[tool]\njobspec = 5 # tool.jobspec"]
)
def test_settings_that_are_no_table_are_a_finding(project, tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    (found,) = find_settings().findings
    assert (found.code, found.message) == ("JS330", "`tool.jobspec` must be a table")


def test_other_tables_of_tools_are_not_for_us_to_judge(project, tmp_path):
    (tmp_path / "pyproject.toml").write_text("tool = 1 # tool.jobspec", encoding="utf-8")
    assert find_settings().findings == ()
