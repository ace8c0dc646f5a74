"""The help of every command, the engine's included, as a terminal of 80 columns shows it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from jobspec.cli import main

COMMANDS = main.list_commands(click.Context(main))


def shown(*arguments):
    return CliRunner().invoke(main, [*arguments, "--help"], terminal_width=80).stdout


def test_the_list_of_commands_has_a_whole_sentence_about_each():
    lines = shown().split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS
    assert [line for line in lines if not line.endswith(".") or line.endswith("..")] == []


def test_the_engine_has_commands_in_that_list():
    assert {"check", "worker", "doctor"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_no_marks_of_its_markup(command):
    text = shown(command)
    assert "\\" not in text
    assert "\b" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_says_what_it_is_for_and_what_it_takes(command):
    options = [
        one
        for one in main.get_command(click.Context(main), command).params
        if isinstance(one, click.Option)
    ]
    assert [one.name for one in options if not one.help] == []
    assert [one.name for one in options if one.type is click.STRING and not one.metavar] == []


@pytest.mark.parametrize("command", ["diff", "key"])
def test_examples_are_printed_as_lines(command):
    lines = [line.strip() for line in shown(command).splitlines()]
    examples = [line for line in lines if line.startswith(f"jobspec {command} ")]
    assert len(examples) >= 2
