"""A classifier that knows questions and records about how something is done."""

from wheelmem import hookimpl


class HowTo:
    name = "howto"

    def weigh(self, question):
        if question.query.lower().startswith(("how to ", "how do ")):
            return {"keyword": 1.5, "hops": 0.5}
        return None  # nothing to say: the next classifier is asked

    def route(self, record):
        # A line of an agent's log: its body is text, or whatever JSON the agent gave.
        body = record.get("body")
        if isinstance(body, str) and body.lower().startswith("how to "):
            return [{"store": "PROCEDURAL", "content": f"- {body}"}]
        return None


@hookimpl
def register_classifiers(register, settings):
    register(HowTo())
