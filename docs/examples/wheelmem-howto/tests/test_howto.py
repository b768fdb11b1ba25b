from wheelmem_howto import HowTo

from wheelmem import Question, Reach, Scope


def test_it_weighs_questions_about_how():
    def weigh(query):
        return HowTo().weigh(Question(query, Reach(Scope())))

    assert weigh("How to trim the wick?")["keyword"] > 1
    assert weigh("Who trimmed the wick?") is None


def test_it_routes_what_tells_how():
    assert HowTo().route({"body": "How to trim a wick: short."}) == [
        {"store": "PROCEDURAL", "content": "- How to trim a wick: short."}
    ]
    assert HowTo().route({"body": {"steps": 3}}) is None
