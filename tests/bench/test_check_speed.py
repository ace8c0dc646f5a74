"""A check is fast enough: ratios measured in one run, in the processor's time."""

from __future__ import annotations

import gc

import pytest

from bench.bench_check import loading, start_up, throughput
from jobspec import KeyTemplate
from jobspec.keys import syntax

TRIES = 3  # a busy machine may slow down one of two that are compared


@pytest.fixture
def folders(tmp_path):
    """Empty folders, one for each try."""
    gc.collect()  # what other tests left behind
    paths = [tmp_path / f"try-{number}" for number in range(TRIES)]
    for path in paths:
        path.mkdir()
    return paths


def test_checking_one_small_file_takes_at_most_two_and_a_half_times_its_imports(folders):
    assert any(start_up(folder) <= 2.5 for folder in folders)


def test_checking_takes_at_most_six_times_what_libyaml_takes_to_load_the_same(folders):
    assert any(throughput(folder, 1_000) <= 6 * loading(folder / "1000") for folder in folders)


def test_ten_times_the_files_take_at_most_twelve_times_as_long(folders):
    assert any(throughput(folder, 10_000) <= 12 * throughput(folder, 1_000) for folder in folders)


def test_the_grammar_of_keys_is_built_once():
    syntax._parser.cache_clear()
    for number in range(50):
        KeyTemplate.parse(f"event.data.only_here_{number}")
    assert syntax._parser.cache_info().misses == 1
