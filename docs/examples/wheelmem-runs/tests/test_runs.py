from wheelmem_runs import Runs, longest_run

from wheelmem.testing import assert_confined, assert_deterministic


def test_words_in_a_row_count():
    assert longest_run(["the", "old", "lantern"], "An old lantern, the old one") == 2
    assert longest_run(["river"], "no such word") == 0


def test_it_keeps_to_the_reach():
    assert_confined(Runs())


def test_it_answers_the_same_twice():
    assert_deterministic(Runs())
