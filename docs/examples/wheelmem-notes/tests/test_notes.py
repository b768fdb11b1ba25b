import asyncio

from wheelmem_notes import Notes

from wheelmem import Question, Reach, Scope
from wheelmem.testing import assert_survives


def test_it_survives_whatever_it_is_asked(tmp_path):
    (tmp_path / "ceremony-1.md").write_text("The lantern was lit by Ana.")
    assert_survives(Notes(tmp_path))
    assert_survives(Notes(tmp_path / "missing"))


def test_it_opens_only_the_notes_in_reach(tmp_path):
    (tmp_path / "ceremony-1.md").write_text("The lantern was lit by Ana.")
    (tmp_path / "ceremony-2.md").write_text("The lantern went out.")
    reach = Reach(Scope(ceremonies="ceremony:1"), ("ceremony:1",))
    answer = asyncio.run(Notes(tmp_path).search(Question("lantern", reach)))
    assert [source.wheel_id for source in answer.sources] == ["ceremony-1.md"]
